import { tableLimits } from './limits.ts';
import type { DataFile } from './table-state.ts';

const { fileBytesMax, fileBytesMin, filesPerMerge, filesPerMergeMax, sizeStep } = tableLimits;

/**
 * Selects the files of one day that should be merged into one, smallest first. While the day is still being written, only
 * files of similar size are merged, and only once there are several of them. A row is therefore rewritten once per size
 * class instead of once per flush. When the day has ended, all files that fit into one file are merged.
 */
export function filesToMerge(files: readonly DataFile[], hasEnded: boolean): readonly DataFile[] {
  const small = files
    .filter(({ bytes }) => bytes < fileBytesMax / 2)
    .sort((one, other) => one.bytes - other.bytes);
  if (hasEnded) return fitting(small, 2);
  for (const group of Map.groupBy(small, stepOf).values()) {
    const merged = fitting(group, filesPerMerge);
    if (merged.length > 0) return merged;
  }
  return [];
}

function stepOf({ bytes }: DataFile): number {
  return Math.floor(Math.log(Math.max(bytes, fileBytesMin)) / Math.log(sizeStep));
}

function fitting(files: readonly DataFile[], filesMin: number): readonly DataFile[] {
  const taken = files.slice(0, Math.min(countWithin(fileBytesMax, files), filesPerMergeMax));
  return taken.length < filesMin ? [] : taken;
}

/** Returns how many of the first files have at most this size together. */
export function countWithin(bytesMax: number, files: readonly DataFile[]): number {
  let sum = 0;
  const end = files.findIndex(({ bytes }) => {
    sum += bytes;
    return sum > bytesMax;
  });
  return end < 0 ? files.length : end;
}
