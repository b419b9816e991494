import type { CheckedBatch } from './batch-builder.ts';

/** A checked batch on its way between threads: the memory that its buffers share, its places as a typed array. */
export interface PackedBatch extends Pick<CheckedBatch, 'received' | 'refused' | 'warnings'> {
  readonly count: number;
  readonly indices: Int32Array;
  /** Empty where there is one wave, of all rows: nearly always. */
  readonly waves: readonly (readonly number[])[];
  readonly memory: ArrayBuffer;
  /** Of the columns, the referenced ids and the sample, in this order. */
  readonly lengths: readonly number[];
  readonly columns: number;
}

export function packBatch({ rows, referenced, sample, indices, waves, ...rest }: CheckedBatch): PackedBatch {
  const { received, refused, warnings } = rest;
  return {
    received,
    refused,
    warnings,
    count: rows.count,
    indices: Int32Array.from(indices),
    waves: waves.length > 1 ? waves : [],
    memory: sample.buffer as ArrayBuffer,
    lengths: [...rows.arrays, ...referenced, sample].map(({ length }) => length),
    columns: rows.arrays.length,
  };
}

export function unpackBatch({
  memory,
  lengths,
  columns,
  count,
  indices,
  waves,
  ...rest
}: PackedBatch): CheckedBatch {
  let at = 0;
  const buffers = lengths.map((length) => {
    const buffer = Buffer.from(memory, at, length);
    at += length;
    return buffer;
  });
  const all = Array.from({ length: count }, (_, place) => place);
  return {
    ...rest,
    rows: { count, arrays: buffers.slice(0, columns) },
    referenced: buffers.slice(columns, -1),
    sample: buffers.at(-1) as Buffer,
    indices: Array.from(indices),
    waves: waves.length > 0 || count === 0 ? waves : [all],
  };
}
