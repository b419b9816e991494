export const tableLimits = {
  /** The maximum size of a merged file, which keeps each rewrite, download and upload small. */
  fileBytesMax: 64 * 1024 * 1024,
  /** Files of similar size that are merged into one while a day is written. Each row is rewritten a few times. */
  filesPerMerge: 8,
  /** Files are of similar size if the largest is less than this many times the size of the smallest. */
  sizeStep: 8,
  /** All files smaller than this count as similar in size. */
  fileBytesMin: 64 * 1024,
  filesPerMergeMax: 500,
  commitsPerCheckpoint: 20,
  /** For readers that follow the log: these entries are already contained in a checkpoint. */
  logKeptMs: 7 * 24 * 3_600_000,
  /** Files that were not completely written. */
  orphansKeptMs: 24 * 3_600_000,
  /** For readers of older versions. The log lists removed files for as long. */
  removedKeptMs: 7 * 24 * 3_600_000,
  childIdleMs: 30_000,
  childHeapMb: 128,
  /** A Parquet process that does not answer within this time is killed. */
  childAnswerMs: 600_000,
} as const;
