import { expect, it } from 'vitest';
import { filesToMerge } from './files-to-merge.ts';
import type { DataFile } from './table-state.ts';

const mb = 1024 * 1024;

function file(bytes: number): DataFile {
  const stats = { numRecords: 1, minValues: {}, maxValues: {} };
  return {
    path: `${bytes}-${Math.random()}`,
    partition: '2026-03-14',
    rows: 1,
    bytes,
    modifiedMs: 0,
    stats,
    sha256: '',
  };
}

const sizes = (files: readonly DataFile[]) => files.map(({ bytes }) => bytes);

it('merges all of a day that has ended, as far as one file can take it', () => {
  expect(sizes(filesToMerge([file(3), file(1), file(2)], true))).toEqual([1, 2, 3]);
  expect(filesToMerge([file(3)], true)).toEqual([]);
  expect(filesToMerge([file(40 * mb), file(60 * mb)], true)).toEqual([]);
  expect(
    sizes(
      filesToMerge(
        [30, 31, 20, 10].map((size) => file(size * mb)),
        true,
      ),
    ),
  ).toEqual([10 * mb, 20 * mb, 30 * mb]);
});

it('merges files of about the same size while the day is being written', () => {
  const tiny = Array.from({ length: 7 }, (_, at) => file(1_000 + at));
  expect(filesToMerge([...tiny, file(5 * mb)], false)).toEqual([]);
  expect(filesToMerge([...tiny, file(20_000)], false).length).toBe(8);
});

it('rewrites each byte of a day of a flush a minute a few times, and never has many files', () => {
  let files: DataFile[] = [];
  let rewritten = 0;
  const merge = (hasEnded: boolean) => {
    for (
      let merged = filesToMerge(files, hasEnded);
      merged.length > 0;
      merged = filesToMerge(files, hasEnded)
    ) {
      const bytes = merged.reduce((sum, one) => sum + one.bytes, 0);
      expect(bytes).toBeLessThanOrEqual(64 * mb);
      rewritten += bytes;
      files = [...files.filter((one) => !merged.includes(one)), file(bytes)];
    }
  };
  const flushed = 200_000;
  for (let minute = 0; minute < 1_440; minute++) {
    files.push(file(flushed));
    merge(false);
    expect(files.length).toBeLessThan(50);
  }
  merge(true);
  expect(rewritten / (1_440 * flushed)).toBeLessThan(3.5);
  expect(files.length).toBeLessThan(12);
});
