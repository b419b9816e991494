export const lakeLimits = {
  /** The number of slots over which the organisations are spread. The migration creates one row per slot. */
  slots: 64,
  slotMs: 15_000,
  slotRenewMs: 5_000,
  /** Database connections per process for reading and for saving progress. One more connection renews slots. */
  connectionsMax: 5,
  /** How often a process checks which organisations have new data (`pollMs`) and which have a lake (`switchMs`). */
  pollMs: 5_000,
  switchMs: 10_000,
  /** How often the tables of an organisation without new data are checked, to notice deleted ones. */
  idleCheckMs: 24 * 3_600_000,
  /** How long a process relies on the last check that the place of the files belongs to its database. */
  placeCheckedMs: 10_000,
  organisationsAtOnce: 2,
  /** An organisation with at least this many new rows counts as busy, and its rows are written after a minute. */
  rowsOfBusy: 1_000,
  busyDelayMs: 60_000,
  /** The number of log entries that are added up to estimate how many rows are waiting. */
  changesEstimated: 10_000,
  /** A step ends after this many rows, or after about this many uncompressed bytes. */
  rowsPerStep: 500_000,
  bytesPerStep: 256 * 1024 * 1024,
  rowsPerRead: 5_000,
  spoolBytesPerWrite: 1024 * 1024,
  /** Newest row ids that are cached per table, to detect duplicates without reading a file, and cached lakes. */
  recentIdsMax: 5_000,
  lakesOpenMax: 200,
  /** The pause after a failed step. It doubles with each consecutive failure, up to the maximum. */
  pauseMs: 2_000,
  pauseMsMax: 600_000,
  commitsPerVacuum: 100,
  /** A step stops between two files, and the next step continues from there. */
  erasingMs: 60_000,
  /** Files that a step deletes when a lake is removed, and how long later steps keep looking for late files. */
  filesPerRemoval: 1_000,
  removingMs: 60_000,
  /** How old a cached file list may be when `serve` lists files, and when it looks up a file by its id. */
  listingFreshMs: 1_000,
  listingKnownMs: 10_000,
  /** The number of file entries, including removed files, that `serve` caches for all tables. Each takes about 600 bytes. */
  filesKnownMax: 100_000,
  filesPerPageMax: 10_000,
  filesPerPageDefault: 1_000,
  bytesPerPiece: 512 * 1024,
  /** For the DuckDB process in which `serve` reads checkpoints. */
  readerMemoryMb: 256,
  parquetMemoryMb: 512,
  parquetThreads: 2,
} as const;
