import type { BatchAnswer, RecordError } from '../../api/types.ts';

/** Errors of an upload with the same field and reason. */
export interface ErrorGroup {
  readonly type: string;
  readonly field: string | null;
  readonly code: string;
  /** Of the first error; the others may name other values. */
  readonly message: string;
  readonly records: readonly Pick<RecordError, 'index' | 'id' | 'message'>[];
}

/** The largest group first. */
export function groupErrors(batches: readonly Pick<BatchAnswer, 'data'>[]): ErrorGroup[] {
  const errors = batches.flatMap(({ data }) => data.errors.map((error) => ({ ...error, type: data.type })));
  const groups = Map.groupBy(errors, ({ type, field, code }) => JSON.stringify([type, field, code]));
  return [...groups.values()]
    .flatMap((records) => {
      const [first] = records;
      if (first === undefined) return [];
      const { type, field, code, message } = first;
      return [{ type, field, code, message, records }];
    })
    .toSorted((one, other) => other.records.length - one.records.length);
}
