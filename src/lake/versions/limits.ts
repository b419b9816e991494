export const versionLimits = {
  /** A whole bucket is merged only when it has this many files. Otherwise a merge commit would follow every flush. */
  filesMin: 3,
  /** Buckets smaller than this are merged completely, so that a small organisation has few files. */
  smallBytes: 1024 * 1024,
  /**
   * A larger bucket is merged when its other files reach this share of its largest file. Each row is then rewritten about
   * 5 times at the last level, and up to a quarter of the rows that readers see may be old versions.
   */
  newShare: 1 / 4,
  /** Larger buckets are split. A merge reads at most twice this size, which takes about 500 MB of memory. */
  bucketBytesMax: 32 * 1024 * 1024,
  splitBytesMax: 96 * 1024 * 1024,
  mergesPerStep: 8,
} as const;
