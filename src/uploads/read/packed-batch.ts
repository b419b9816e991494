import type { CheckedBatch } from './batch-builder.ts';

/** A batch that is passed between threads, with the memory that its buffers share. */
export interface PackedBatch
  extends Pick<
    CheckedBatch,
    'mode' | 'received' | 'failed' | 'hasRepeatedIds' | 'warnings' | 'failedSha256'
  > {
  readonly count: number;
  readonly indices: Int32Array;
  readonly memory: ArrayBuffer;
  /** In the order of `memory`: the failed records' JSON, ids and times, the sample, the columns, the referenced ids. */
  readonly lengths: readonly number[];
  readonly columns: number;
}

export function packBatch(batch: CheckedBatch): PackedBatch {
  const { rows, indices, failedTexts, failedIds, failedUpdated, sample, referenced, ...rest } = batch;
  return {
    ...rest,
    count: rows.count,
    indices: Int32Array.from(indices),
    memory: sample.buffer as ArrayBuffer,
    lengths: [failedTexts, failedIds, failedUpdated, sample, ...rows.arrays, ...referenced].map(
      ({ length }) => length,
    ),
    columns: rows.arrays.length,
  };
}

export function unpackBatch({
  memory,
  lengths,
  columns,
  count,
  indices,
  ...rest
}: PackedBatch): CheckedBatch {
  let at = 0;
  const buffers = lengths.map((length) => {
    const buffer = Buffer.from(memory, at, length);
    at += length;
    return buffer;
  });
  const [failedTexts, failedIds, failedUpdated, sample, ...arrays] = buffers as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    ...Buffer[],
  ];
  return {
    ...rest,
    failedTexts,
    failedIds,
    failedUpdated,
    sample,
    rows: { count, arrays: arrays.slice(0, columns) },
    referenced: arrays.slice(columns),
    indices: Array.from(indices),
  };
}
