import type { CheckedBatch } from './check-batch.ts';

/** A checked batch on its way between threads: its buffers side by side in one, its places as a typed array. */
export interface PackedBatch extends Pick<CheckedBatch, 'received' | 'refused' | 'warnings'> {
  readonly count: number;
  readonly indices: Int32Array;
  /** Empty where there is one wave, of all rows: nearly always. */
  readonly waves: readonly (readonly number[])[];
  readonly bytes: Uint8Array;
  /** Of the columns, the referenced ids and the sample, in this order. */
  readonly lengths: readonly number[];
  readonly columns: number;
}

export function packBatch({ rows, referenced, sample, indices, waves, ...rest }: CheckedBatch): PackedBatch {
  const buffers = [...rows.arrays, ...referenced, sample];
  const lengths = buffers.map(({ length }) => length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const buffer of buffers) {
    bytes.set(buffer, at);
    at += buffer.length;
  }
  const { received, refused, warnings } = rest;
  return {
    received,
    refused,
    warnings,
    count: rows.count,
    indices: Int32Array.from(indices),
    waves: waves.length > 1 ? waves : [],
    bytes,
    lengths,
    columns: rows.arrays.length,
  };
}

export function unpackBatch({
  bytes,
  lengths,
  columns,
  count,
  indices,
  waves,
  ...rest
}: PackedBatch): CheckedBatch {
  let at = bytes.byteOffset;
  const buffers = lengths.map((length) => {
    const buffer = Buffer.from(bytes.buffer, at, length);
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
