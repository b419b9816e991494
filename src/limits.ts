/** Every bound of the service, its unit in its name. A bound an operator may move is a default in config.ts. */
export const limits = {
  recordsPerBatch: 1_000,
  /** How many records of a batch are looked for to tell whether it was sent before. */
  recordsPerSample: 32,
  recordsPerRequestMax: 5_000,
  coursesPerRequestMax: 1_000,
  bodyBytesMax: 32 * 1024 * 1024,
  /** From this size on a body is parsed and checked in a thread of its own; below, the way there would cost more. */
  bodyBytesForWorker: 64 * 1024,
  workerYoungGenerationMb: 64,
  workerIdleMs: 30_000,
  headersBytesMax: 16 * 1024,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  /** A connection on which nothing moves, in either direction: longer than any statement may take. */
  socketIdleTimeoutMs: 180_000,
  connectionsMax: 10_000,
  databaseConnectTimeoutMs: 5_000,
  /** How much longer than PostgreSQL itself we wait for a statement to be ended. */
  databaseGraceMs: 5_000,
  parameterProblemsMax: 20,
  textCodePointsMax: 1_000,
  branchListCodePointsMax: 20_000,
  interactionUserCodePointsMax: 255,
  errorsPerRecordMax: 5,
  errorsInSummaryMax: 3,
  unknownFieldNamesMax: 20,
  unknownFieldNameCharactersMax: 64,
  updatedAheadMs: 24 * 3_600_000,
  idempotencyKeyCharactersMax: 255,
  idempotencyKeyLifeMs: 24 * 3_600_000,
  /** Below it a body can be put into canonical form without deep recursion; no interaction needs more than one level. */
  idempotentBodyDepthMax: 32,
  interactionsPerPageMax: 1_000,
  interactionsPerPageDefault: 100,
  /** Integers below it are epoch seconds, from it on milliseconds. */
  epochSecondsEnd: 100_000_000_000,
  interactionPartitionsAheadMonths: 6,
  interactionsPerStatementMax: 500,
  interactionWritersMax: 3,
  interactionsWaitingMax: 10_000,
  /** Below the five seconds within which a revoked key must be refused. */
  keyKnownMs: 3_000,
  keysKnownMax: 10_000,
  batchAttemptsMax: 5,
  purgeRowsMax: 5_000,
  housekeepingIntervalMs: 3_600_000,
  retryAfterSeconds: 5,
} as const;
