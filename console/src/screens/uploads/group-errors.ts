import type { BatchAnswer, RecordError } from '../../api/types.ts';

/** The errors in an upload that have the same field and reason. */
export interface ErrorGroup {
  readonly type: string;
  readonly field: string | null;
  readonly code: string;
  /** The message of the first error. Other errors in the group may mention different values. */
  readonly message: string;
  readonly records: readonly Pick<RecordError, 'index' | 'id' | 'message'>[];
}

/** Groups errors, with the largest group first. */
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
