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

/**
 * Makes the check of one kind of record. The check reads each known field once, returning either the row to store or
 * what is wrong with it, and calls `onUnknownField` for every other name it meets.
 */
export function compileCheck(fields: Record<string, Field>) {
  const entries = Object.entries(fields);
  const known = new Set(Object.keys(fields));
  return function check(record: unknown, onUnknownField: (name: string) => void): Checked {
    if (!isRecord(record)) return { problems: [notAnObject] };
    const row: Row = new Array(entries.length);
    let problems: FieldProblem[] | undefined;
    let index = 0;
    for (const [name, field] of entries) {
      const value = readField(field, record[name]);
      if (value !== null && isProblem(value)) {
        problems ??= [];
        if (problems.length < limits.errorsPerRecordMax) problems.push({ field: name, ...value });
      } else {
        row[index] = value;
      }
      index++;
    }
    for (const name in record) if (!known.has(name)) onUnknownField(name);
    return problems ? { problems } : { row };
  };
}

function readField(field: Field, value: unknown): Scalar | Problem | null {
  if (value === undefined || value === null) return field.required ? required : (field.fallback ?? null);
  if (value === '' && field.required) return required;
  return field.read(value);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The identifier of a record as sent, for an answer about it: only ever a UUID, so that nothing else is echoed. */
export function sentId(record: unknown, idField: string): string | null {
  const id = isRecord(record) ? record[idField] : undefined;
  return isUuid(id) ? id.toLowerCase() : null;
}
