export const accessLimits = {
  /** Requests of an organisation that are not done yet, requests and their records that are kept for download. */
  requestsOpenMax: 100,
  requestsKeptMax: 10_000,
  recordsKeptMax: 5_000_000,
  /** Requests and ids that are collected together. Every part reads all ids, and a record is stored once for each request. */
  requestsTogetherMax: 20,
  idsTogetherMax: 5_000,
  recordsKeptMs: 7 * 24 * 3_600_000,
} as const;
