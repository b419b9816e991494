/** Limits for a table in the lake. */
export const tableLimits = {
  /** The maximum size of a merged file, which keeps each rewrite, download and upload small. */
  fileBytesMax: 64 * 1024 * 1024,
  /**
   * While a day is still being written, this many files of similar size are merged into one, so each row is rewritten only
   * a few times.
   */
  filesPerMerge: 8,
  /** Files are of similar size if the largest is less than this many times the size of the smallest. */
  sizeStep: 8,
  /** All files smaller than this count as similar in size. */
  fileBytesMin: 64 * 1024,
  filesPerMergeMax: 500,
  commitsPerCheckpoint: 20,
  /** How long to keep log entries that are already contained in a checkpoint, for readers that follow the log. */
  logKeptMs: 7 * 24 * 3_600_000,
  /** How long to keep files that were not completely written. */
  orphansKeptMs: 24 * 3_600_000,
  /** How long removed files are kept for readers of older versions, and listed in the log. */
  removedKeptMs: 7 * 24 * 3_600_000,
  /** The Parquet process exits after being idle for this long. */
  childIdleMs: 30_000,
  childHeapMb: 128,
  /** A Parquet process that does not answer within this time is killed. */
  childAnswerMs: 600_000,
} as const;
