import { limits } from '../limits.ts';
import { type Field, isProblem, isUuid, type Problem, required, type Scalar } from './fields.ts';

/** A checked record: one value per field, in the registry's order, as it will be stored. */
export type Row = (Scalar | null)[];

/** One bad field of a record; `field` is null where the record as a whole is at fault. */
export interface FieldProblem extends Problem {
  readonly field: string | null;
}

export type Checked =
  | { readonly row: Row; readonly problems?: undefined }
  | { readonly row?: undefined; readonly problems: readonly FieldProblem[] };

const notAnObject: FieldProblem = {
  field: null,
  code: 'not_an_object',
  message: 'each record must be a JSON object of the fields of its type',
};

/** Stands for a record that was not even parsed. */
export const nestedTooDeeply = Symbol('nested too deeply');

const tooDeep: FieldProblem = {
  field: null,
  code: 'nested_too_deeply',
  message: 'a record is nested too deeply; send a flat object of the fields of its type',
};

/**
 * Makes the check of one kind of record. The check reads each known field once, returning either the row to store or
 * what is wrong with it, and calls `onUnknownField` for every other name it meets.
 */
export function compileCheck(fields: Record<string, Field>) {
  const names = Object.keys(fields);
  const known = new Set(names);
  const readRow = compileReadRow(fields);
  return function check(record: unknown, onUnknownField: (name: string) => void): Checked {
    if (!isRecord(record)) return { problems: [record === nestedTooDeeply ? tooDeep : notAnObject] };
    const row = readRow(record);
    for (const name in record) if (!known.has(name)) onUnknownField(name);
    for (const value of row)
      if (value !== null && isProblem(value)) return { problems: problemsOf(row, names) };
    return { row: row as Row };
  };
}

type ReadRow = (record: Record<string, unknown>) => (Scalar | Problem | null)[];

/**
 * Writes the function that reads a record's fields, one expression each. A loop over the fields would look each name up
 * in a place that has seen every type's records, and call each reader from one that has seen every reader: it takes 1.3
 * times as long.
 */
function compileReadRow(fields: Record<string, Field>): ReadRow {
  const values = Object.entries(fields).map(([name, field], at) => {
    const missing = field.required ? 'required' : JSON.stringify(field.fallback ?? null);
    const isEmpty = field.required ? " || value === ''" : '';
    return `(value = record[${JSON.stringify(name)}]) === undefined || value === null${isEmpty} ? ${missing} : read${at}(value)`;
  });
  const readers = Object.values(fields).map(({ read }) => read);
  const parameters = ['required', ...readers.map((_, at) => `read${at}`)];
  const source = `return (record) => { let value; return [${values.join(',\n')}]; }`;
  return new Function(...parameters, source)(required, ...readers);
}

function problemsOf(row: readonly (Scalar | Problem | null)[], names: readonly string[]): FieldProblem[] {
  return row
    .flatMap((value, at) =>
      value !== null && isProblem(value) ? [{ field: names[at] ?? null, ...value }] : [],
    )
    .slice(0, limits.errorsPerRecordMax);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The identifier of a record as sent, for an answer about it: only ever a UUID, so that nothing else is echoed. */
export function sentId(record: unknown, idField: string): string | null {
  const id = isRecord(record) ? record[idField] : undefined;
  return isUuid(id) ? id.toLowerCase() : null;
}
