import { limits } from '../limits.ts';
import { type Field, isProblem, isUuid, type Problem, required, type Scalar } from './fields.ts';

/** A checked record: one value per field, in the registry's order, as it will be stored. */
export type Row = (Scalar | null)[];

/** One wrong field of a record; `field` is null if the record as a whole is wrong. */
export interface FieldProblem extends Problem {
  readonly field: string | null;
}

export type Checked =
  | { readonly row: Row; readonly problems?: undefined }
  | { readonly row?: undefined; readonly problems: readonly FieldProblem[] };

const repeatedField: Problem = {
  code: 'repeated_field',
  message: 'is given more than once in this record; send it once',
};

/**
 * Makes the check of one record type. The check takes one sent value per field, in the registry's order (undefined if
 * absent), and returns either the row to store or its problems.
 */
export function makeCheck(fields: Readonly<Record<string, Field>>) {
  const inOrder = Object.values(fields);
  const nameProblem = Object.keys(fields).map(problemNamer);
  return function check(values: readonly unknown[], repeated: readonly number[]): Checked {
    const row: (Scalar | Problem | null)[] = new Array(inOrder.length);
    let isBad = repeated.length > 0;
    for (let at = 0; at < inOrder.length; at++) {
      const value = readField(inOrder[at] as Field, values[at]);
      row[at] = value;
      if (value !== null && isProblem(value)) isBad = true;
    }
    if (!isBad) return { row: row as Row };
    for (const position of repeated) row[position] = repeatedField;
    const problems = row.flatMap((value, at) =>
      value !== null && isProblem(value) ? (nameProblem[at]?.(value) ?? []) : [],
    );
    return { problems: problems.slice(0, limits.errorsPerRecordMax) };
  };
}

/**
 * Returns the same object for the same field and problem: however many records fail, it is copied between threads only
 * once.
 */
function problemNamer(field: string): (problem: Problem) => FieldProblem {
  const named = new WeakMap<Problem, FieldProblem>();
  return (problem) => {
    const known = named.get(problem) ?? { field, ...problem };
    named.set(problem, known);
    return known;
  };
}

function readField({ required: isRequired, fallback, read }: Field, value: unknown): Scalar | Problem | null {
  const isMissing = value === undefined || value === null || (isRequired && value === '');
  if (isMissing) return isRequired ? required : (fallback ?? null);
  return read(value);
}

/** The id of a record for an answer about it: only ever a UUID, so that nothing else is echoed. */
export function sentId(value: unknown): string | null {
  return isUuid(value) ? value.toLowerCase() : null;
}

/** The problem of a record that cannot be read at all. */
export const unreadableRecord = {
  not_an_object: {
    field: null,
    code: 'not_an_object',
    message: 'each record must be a JSON object of the fields of its type',
  },
  nested_too_deeply: {
    field: null,
    code: 'nested_too_deeply',
    message: 'a record is nested too deeply; send a flat object of the fields of its type',
  },
  too_many_fields: {
    field: null,
    code: 'record_too_large',
    message: `a record may have at most ${limits.fieldsPerRecordMax} fields; leave out those that are not of its type`,
  },
  too_large: {
    field: null,
    code: 'record_too_large',
    message: `a record may take at most ${limits.recordBytesMax} bytes of JSON; shorten it or leave out fields that are not of its type`,
  },
} as const satisfies Record<string, FieldProblem>;
