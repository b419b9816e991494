import { type ArrayType, arrayHeaderBytes, binaryArray } from '../../postgres/binary/array-writer.ts';
import type { EncodedRows } from '../../postgres/binary/encoded-rows.ts';
import { type FieldProblem, required } from '../../registry/fields.ts';
import { perType, type Resource, type ResourceType, resources } from '../../registry/resources.ts';

/** A bitmask of the fields that a record to be merged was sent with. It is the last column of the rows. */
export function sentOf({ arrays }: EncodedRows, row: number): number {
  // A length of four bytes, and four bytes for the number itself.
  return (arrays.at(-1) as Buffer).readInt32BE(arrayHeaderBytes + row * 8 + 4);
}

/** As a bitmask. No type has this many. */
export const allFields = 2 ** 31 - 1;

const column = '"#sent"';

/** The columns of rows to be merged. */
export function withSent(columns: readonly string[], types: readonly ArrayType[]) {
  return { columns: [...columns, column], types: [...types, 'int4' as const] };
}

/** In SQL, for a row `i`. */
export function isSent(position: number): string {
  return `i.${column} & ${1 << position} <> 0`;
}

/** As if each record had been sent with all fields. */
export function withAllSent({ count, arrays }: EncodedRows): EncodedRows {
  return { count, arrays: [...arrays, binaryArray('int4', new Array(count).fill(allFields))] };
}

export function withoutSent({ count, arrays }: EncodedRows): EncodedRows {
  return { count, arrays: arrays.slice(0, -1) };
}

const requiredFields = perType((type: ResourceType) => {
  const { fields }: Resource = resources[type];
  return Object.entries(fields).flatMap(([field, { required: isRequired }], at) =>
    isRequired ? [{ bit: 1 << at, problem: { field, ...required } satisfies FieldProblem }] : [],
  );
});

/** Returns the required fields that a new record was sent without. */
export function lackingIn(type: ResourceType, sent: number): FieldProblem[] {
  return requiredFields(type).flatMap(({ bit, problem }) => ((sent & bit) === 0 ? [problem] : []));
}
