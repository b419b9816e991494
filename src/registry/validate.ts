import { limits } from '../limits.ts';
import { type Field, isProblem, isUuid, type Problem, required, type Scalar } from './fields.ts';

/** One value per field in the registry's order, in stored form. */
export type Row = (Scalar | null)[];

/** `field` is null if the problem is with the record as a whole. */
export interface FieldProblem extends Problem {
  readonly field: string | null;
}

type Checked =
  | { readonly row: Row; readonly problems?: undefined }
  | { readonly row?: undefined; readonly problems: readonly FieldProblem[] };

const repeatedField: Problem = {
  code: 'repeated_field',
  message: 'is given more than once in this record; send it once',
};

/** The check takes one value per field in the registry's order, or undefined if a field is absent. */
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

/** Each field and problem has one object, which is copied between threads only once, however many records fail. */
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

/** Always a UUID, so that no other input is echoed. */
export function sentId(value: unknown): string | null {
  return isUuid(value) ? value.toLowerCase() : null;
}

export const unreadableRecord = {
  not_an_object: {
    field: null,
    code: 'not_an_object',
    message: 'each record must be a JSON object with the fields of its type',
  },
  nested_too_deeply: {
    field: null,
    code: 'nested_too_deeply',
    message: 'a record is nested too deeply; send a flat object with the fields of its type',
  },
  too_many_fields: {
    field: null,
    code: 'record_too_large',
    message: `a record may have at most ${limits.fieldsPerRecordMax} fields; leave out fields that its type does not have`,
  },
  too_large: {
    field: null,
    code: 'record_too_large',
    message: `a record may take at most ${limits.recordBytesMax} bytes of JSON; shorten it, or leave out fields that its type does not have`,
  },
} as const satisfies Record<string, FieldProblem>;
