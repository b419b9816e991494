import { countWithin, filesToMerge } from '../table/files-to-merge.ts';
import type { DataFile } from '../table/table-state.ts';
import { versionLimits } from './limits.ts';

/** Files to merge into one file of the same bucket, or to split into one file for each child bucket. */
export interface Merge {
  readonly bucket: string;
  readonly files: readonly DataFile[];
  readonly isSplit: boolean;
}

const { bucketBytesMax, filesMin, newShare, smallBytes, splitBytesMax } = versionLimits;

/**
 * A bucket contains the ids whose hash starts with the bucket's hexadecimal digits. The root bucket has no digits and
 * contains all ids. A small bucket is one file, and a large one has 16 child buckets. New versions are added to the
 * root bucket and move down once there are enough of them, so that a merge in a large table rewrites only a small part
 * of it. Files can be merged in any order, because every row has its change number, and a row is dropped only if the
 * same merge has a newer version.
 */
export function nextMerge(files: readonly DataFile[]): Merge | undefined {
  const buckets = Map.groupBy(files, bucketOf);
  const inner = new Set([...buckets.keys()].flatMap(ancestorsOf));
  for (const [bucket, own] of buckets) {
    const merge = inner.has(bucket) ? mergeOfInner(own) : mergeOfLast(own);
    if (merge.files.length > 0) return { bucket, ...merge };
  }
  return undefined;
}

function ancestorsOf(bucket: string): string[] {
  return Array.from(bucket, (_, digits) => bucket.slice(0, digits));
}

const prefix = 'bucket-';

export function bucketOf({ partition = prefix }: Pick<DataFile, 'partition'>): string {
  return partition.slice(prefix.length);
}

export function partitionOf(bucket: string): string | undefined {
  return bucket === '' ? undefined : prefix + bucket;
}

function mergeOfInner(files: readonly DataFile[]): Omit<Merge, 'bucket'> {
  if (bytesOf(files) >= bucketBytesMax) return { files: filesToSplit(files), isSplit: true };
  return { files: filesToMerge(files, false), isSplit: false };
}

function mergeOfLast(files: readonly DataFile[]): Omit<Merge, 'bucket'> {
  const bytes = bytesOf(files);
  const [largest, ...others] = files.toSorted((one, other) => other.bytes - one.bytes) as [
    DataFile,
    ...DataFile[],
  ];
  if (largest.bytes > bucketBytesMax || bytes > 2 * bucketBytesMax)
    return { files: filesToSplit(files), isSplit: true };
  const isWorthAll = bytes < smallBytes || bytesOf(others) >= newShare * largest.bytes;
  if (files.length >= filesMin && isWorthAll) return { files, isSplit: false };
  return { files: filesToMerge(others, false), isSplit: false };
}

function bytesOf(files: readonly DataFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Always takes at least one file. */
function filesToSplit(files: readonly DataFile[]): readonly DataFile[] {
  return files.slice(0, Math.max(1, countWithin(splitBytesMax, files)));
}
