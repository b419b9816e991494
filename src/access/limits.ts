export const accessLimits = {
  /** Limits per organisation on unfinished requests, on finished requests, and on the records stored for download. */
  requestsOpenMax: 100,
  requestsKeptMax: 10_000,
  recordsKeptMax: 5_000_000,
  /** Collected together. Every part reads all of the ids, and a record is stored once for each matching request. */
  requestsTogetherMax: 20,
  idsTogetherMax: 5_000,
  /** How many users that were seen together with a person a step looks at, and how many interactions of each. */
  seenUsersPerStep: 50,
  interactionsPerSeenUser: 10_000,
  recordsKeptMs: 7 * 24 * 3_600_000,
} as const;
