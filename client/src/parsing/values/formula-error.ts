import type { CellProblem, Convert } from './convert-cell.ts';

/** The text of formulas whose program has not calculated them, such as those of a library that only writes files. */
export const uncalculated = '#CALCULATE!';

const errors = new Map([
  ...['#REF!', '#N/A', '#DIV/0!', '#VALUE!', '#NAME?', '#NUM!', '#NULL!', '#SPILL!', '#CALC!'].map(named),
  ...['#FIELD!', '#BLOCKED!', '#CONNECT!', '#BUSY!', '#UNKNOWN!', '#GETTING_DATA', '#NAME!'].map(named),
  // Programs in German, French and Spanish write these to CSV.
  ...['#BEZUG!', '#NV', '#WERT!', '#ZAHL!', '#ÜBERLAUF!'].map(named),
  ...['#VALEUR!', '#NOM?', '#NOMBRE!', '#NUL!', '#¡REF!', '#¡DIV/0!', '#¡VALOR!', '#¿NOMBRE?', '#¡NUM!'].map(
    named,
  ),
  [
    uncalculated,
    {
      code: 'invalid_value',
      message: 'is a formula without a result; open the file in a spreadsheet program and save it',
    },
  ] as const,
]);

function named(error: string): readonly [string, CellProblem] {
  return [
    error,
    { code: 'invalid_value', message: `is ${error}, the error of a formula; correct it in the spreadsheet` },
  ];
}

/** Returns the problem with a cell that is the error of a formula, which is a value of no field. */
export function formulaError(cell: string): CellProblem | undefined {
  return cell.charCodeAt(0) === 0x23 /* # */ ? errors.get(cell) : undefined;
}

/** Adds the errors of formulas to a converter as problems, and reads cells of spaces as empty ones. */
export function withoutErrors(convert: Convert | undefined): Convert {
  if (convert === undefined)
    return (cell) =>
      cell.charCodeAt(0) > 0x23 ? cell : (formulaError(cell) ?? (cell.trim() === '' ? undefined : cell));
  return (cell) => formulaError(cell) ?? convert(cell);
}
