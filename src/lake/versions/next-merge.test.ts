import { expect, it } from 'vitest';
import type { DataFile } from '../table/table-state.ts';
import { bucketOf, type Merge, nextMerge, partitionOf } from './next-merge.ts';

const kb = 1024;
const mb = 1024 * kb;

function file(bytes: number, bucket = ''): DataFile {
  const stats = { numRecords: 1, minValues: {}, maxValues: {} };
  const path = `${bucket}${bytes}-${Math.random()}`;
  return { path, partition: partitionOf(bucket), rows: 1, bytes, modifiedMs: 0, stats, sha256: '' };
}

const merged = (merge: Merge | undefined) =>
  merge && {
    bucket: merge.bucket,
    bytes: merge.files.map(({ bytes }) => bytes).toSorted(),
    isSplit: merge.isSplit,
  };

it('a small table is one file again after two more', () => {
  expect(nextMerge([])).toBeUndefined();
  expect(nextMerge([file(500 * kb), file(3 * kb)])).toBeUndefined();
  expect(merged(nextMerge([file(500 * kb), file(3 * kb), file(4 * kb)]))).toEqual({
    bucket: '',
    bytes: [3 * kb, 4 * kb, 500 * kb].toSorted(),
    isSplit: false,
  });
});

it('a larger one is rewritten when enough of it is new; until then, new files are merged with one another', () => {
  const large = file(20 * mb);
  const small = Array.from({ length: 7 }, () => file(30 * kb));
  expect(nextMerge([large, ...small])).toBeUndefined();
  expect(merged(nextMerge([large, ...small, file(30 * kb)]))).toMatchObject({
    bytes: Array(8).fill(30 * kb),
  });
  expect(nextMerge([large, file(3 * mb), file(mb)])).toBeUndefined();
  expect(nextMerge([large, file(3 * mb), file(2 * mb)])?.files).toHaveLength(3);
});

it('a bucket that is too large for one file is split, and so are versions that arrive later', () => {
  expect(merged(nextMerge([file(35 * mb, '5'), file(mb, '5')]))).toMatchObject({
    bucket: '5',
    isSplit: true,
  });
  const below = [file(30 * mb, '5'), file(30 * mb, 'a')];
  expect(nextMerge([...below, file(16 * mb), file(15 * mb)])).toBeUndefined();
  expect(merged(nextMerge([...below, file(16 * mb), file(16 * mb)]))).toMatchObject({
    bucket: '',
    isSplit: true,
  });
  // A merge takes only as many files as fit into memory.
  expect(nextMerge(Array.from({ length: 30 }, () => file(20 * mb)))?.files).toHaveLength(4);
});

/** A table in which each flush changes random ids. Its files are merged as they would be after a step. */
class Table {
  files: DataFile[] = [];
  rewritten = 0;
  /** The number of distinct ids. Each id takes one byte. */
  readonly #bytes: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  flush(bytes: number): void {
    this.files.push(file(bytes));
    for (let merges = 0; merges < 8; merges++) {
      const merge = nextMerge(this.files);
      if (!merge) break;
      const sum = merge.files.reduce((all, { bytes: one }) => all + one, 0);
      this.rewritten += sum;
      const parts = merge.isSplit
        ? Array.from('0123456789abcdef', (digit) => merge.bucket + digit)
        : [merge.bucket];
      this.files = [
        ...this.files.filter((one) => !merge.files.includes(one)),
        ...parts.map((bucket) => file(Math.min(sum / parts.length, this.#idsOf(bucket)), bucket)),
      ];
    }
  }

  get bytes(): number {
    return this.files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #idsOf(bucket: string): number {
    return this.#bytes / 16 ** bucket.length;
  }
}

it('7 GB, 100 million transactions, are copied and updated by rewriting each byte a few times, in steps of a few files', () => {
  const gb = 1024 * mb;
  const table = new Table(7 * gb);
  const copied = 40 * mb;
  for (let sum = 0; sum < 7 * gb; sum += copied) table.flush(copied);
  expect(table.rewritten / (7 * gb)).toBeLessThan(8);
  expect(Math.max(...table.files.map((one) => bucketOf(one).length))).toBe(2);
  const [before, updated] = [table.rewritten, 4 * mb];
  for (let sum = 0; sum < 5 * gb; sum += updated) {
    table.flush(updated);
    expect(table.files.length).toBeLessThan(2_000);
  }
  expect((table.rewritten - before) / (5 * gb)).toBeLessThan(10);
  expect(table.bytes).toBeLessThan(10 * gb);
});

it('a table of which a little changes every hour has two files, or a few more when it is not small', () => {
  const [small, medium] = [new Table(200 * kb), new Table(30 * mb)];
  small.flush(200 * kb);
  medium.flush(30 * mb);
  for (let hour = 0; hour < 240; hour++) {
    small.flush(4 * kb);
    medium.flush(40 * kb);
    expect(small.files.length).toBeLessThanOrEqual(2);
    expect(medium.files.length).toBeLessThan(20);
  }
});
