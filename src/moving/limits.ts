/** The bounds of a move. An import that continues must cut the files as before, so those of a request belong to the format. */
export const moveLimits = {
  /** A file of an export is full after so many rows, or bytes before compression. */
  partRows: 1_000_000,
  partBytes: 1024 * 1024 * 1024,
  /** With the last rows, which were read together. */
  partBytesMax: 2 * 1024 * 1024 * 1024,
  manifestBytesMax: 16 * 1024 * 1024,
  readBytes: 256 * 1024,
  /** An import stores so many rows, or bytes, under one receipt. */
  requestRows: 5_000,
  requestBytes: 8 * 1024 * 1024,
  /** Longer than any row of an export. */
  lineBytesMax: 1024 * 1024,
  requestsAtOnce: 3,
  /** An import ends when so many rows have failed: the files are not for this service. */
  failedMax: 10_000,
  progressMs: 5_000,
} as const;
