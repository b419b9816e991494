/** An import that continues must split files in the same way as before, so request limits are part of the format. */
export const moveLimits = {
  /** An export file is full after this many rows, or after this many bytes before compression. */
  partRows: 1_000_000,
  partBytes: 1024 * 1024 * 1024,
  /** The maximum size before compression, including the last rows, which were read together. */
  partBytesMax: 2 * 1024 * 1024 * 1024,
  manifestBytesMax: 16 * 1024 * 1024,
  readBytes: 256 * 1024,
  /** An import stores this many rows, or this many bytes, under one receipt. */
  requestRows: 5_000,
  requestBytes: 8 * 1024 * 1024,
  /** The maximum length of a line. No exported row is longer. */
  lineBytesMax: 1024 * 1024,
  requestsAtOnce: 3,
  /** An import stops when this many rows have failed, because the files are then probably not meant for this service. */
  failedMax: 10_000,
  progressMs: 5_000,
} as const;
