/** Every bound of the service, its unit in its name. A bound an operator may move is a default in config.ts. */
export const limits = {
  // HTTP: connections, headers, bodies, answers

  headersBytesMax: 16 * 1024,
  bodyBytesMax: 32 * 1024 * 1024,
  /** Room for a body of which no length was announced; it doubles. */
  bodyBytesAtFirst: 16 * 1024,
  /** Of a body where none is expected: enough to say so. */
  unexpectedBodyBytesMax: 1_024,
  /** What is still read of a body that was refused, and for how long. */
  discardedBytesMax: 64 * 1024 * 1024,
  discardMs: 5_000,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  /** A connection on which nothing moves, in either direction: longer than any statement may take. */
  idleTimeoutMs: 180_000,
  connectionsMax: 15_000,
  connectionsCheckIntervalMs: 1_000,
  /** Below the 30 seconds after which what runs a container usually kills it. */
  stopTimeoutMs: 25_000,
  /** How often connections that have fallen idle are looked for while the process stops. */
  stopIntervalMs: 100,
  /** For how long a process that stops keeps an idle connection of a proxy; deploy/nginx/intake.conf ends it before. */
  stopProxyIdleMs: 3_000,
  /** Listeners are closed in a turn of the event loop that is this short, if one comes in time. */
  stopTurnMs: 0.2,
  stopTurnWaitMs: 3_000,
  certificateIntervalMs: 2_000,
  /** What an answer that is made while it is read takes at most, and how much is held for it. */
  streamedAnswerBytes: 4 * 1024 * 1024,
  /** A smaller answer is with the system at once, whether or not its client reads it. */
  answerBytesForSocket: 64 * 1024,
  metricsConnectionsMax: 20,
  metricsTimeoutMs: 5_000,
  /** Of the requests whose caller does not decide, the share that is traced. */
  tracedRatio: 0.01,
  tracedLinksMax: 128,
  tracesStopMs: 2_000,
  parameterProblemsMax: 20,
  fileBytesPerWrite: 64 * 1024,
  referenceTimeoutMs: 30_000,
  retryAfterSeconds: 5,

  // JSON

  /** Levels of objects and arrays within each other; no request needs more than three. */
  bodyDepthMax: 32,
  /** Around a record there are the brackets of the body and of its records. */
  recordDepthMax: 30,
  /** No field has a longer name, even if every character of it is escaped. */
  fieldNameBytesMax: 512,
  /** Exports may have many columns that are not known here; each costs a look at its name. */
  fieldsPerRecordMax: 1_000,

  // The registry: values of fields

  textCodePointsMax: 1_000,
  branchListCodePointsMax: 20_000,
  interactionUserCodePointsMax: 255,
  /** Integers below it are epoch seconds, from it on milliseconds. */
  epochSecondsEnd: 100_000_000_000,
  errorsPerRecordMax: 5,
  unknownFieldNamesMax: 20,
  unknownFieldNameCharactersMax: 64,

  // PostgreSQL: connections and transactions

  databaseConnectTimeoutMs: 5_000,
  databaseIdleMs: 10 * 60_000,
  /** How much longer than PostgreSQL itself we wait for a statement to be ended. */
  databaseGraceMs: 5_000,
  /** Of the connections for uploads and reads: what one organisation can have of them at once. */
  connectionShareMax: 0.75,
  connectionsWaitingMax: 10_000,
  connectionWaitMs: 10_000,
  /** Half a second less than is promised. */
  readinessTimeoutMs: 1_500,
  readinessReusedMs: 1_000,
  /** Writing that has not moved for so long makes a process unready, which is promised within 10 seconds. */
  stalledMs: 8_000,
  batchAttemptsMax: 10,

  // Records: reading back

  recordsPerPageMax: 1_000,
  recordsPerPageDefault: 100,
  /** How many records are looked at, in the order of their ids, for those that a reader asks for. */
  recordsPerScan: 10_000,
  /** How many a query brings at most, and how many characters of them: some types have room for long texts. */
  recordsPerRead: 1_000,
  recordCharactersPerRead: 4 * 1024 * 1024,
  /** When a page is answered though it is not full. */
  recordSearchMs: 1_000,

  // Receipts

  receiptsPerPageMax: 100,
  receiptsPerPageDefault: 20,
  receiptsKeptDays: 30,
  weeklyPartitionsAhead: 4,

  // Rejections

  rejectionsPerPageMax: 1_000,
  rejectionsPerPageDefault: 100,
  rejectionPageBytesMax: 4 * 1024 * 1024,
  rejectionGroupsMax: 1_000,
  /** Up to so many rejections of a type an upload is told the ids of all of them, instead of asking for each of its own. */
  fewRejectionsMax: 500,
  rejectionKindsPerBatchMax: 50,
  /** Of an organisation: beyond it a rejection is told by its first problem alone. */
  rejectionKindsMax: 2_000,
  rejectionKindsSummarisedMax: 10_000,
  rejectionKindLifeMs: 7 * 24 * 3_600_000,
  rejectionsPerDiscard: 10_000,

  // Uploads

  recordsPerRequestMax: 5_000,
  coursesPerRequestMax: 1_000,
  recordsPerBatch: 1_000,
  /** How many records of a batch are looked for to tell whether it was sent before. */
  recordsPerSample: 32,
  /** A larger record fails; its neighbours do not. */
  recordBytesMax: 64 * 1024,
  /** Of everything in an upload beside `records`. */
  besideRecordsBytesMax: 64 * 1024,
  updatedAheadMs: 24 * 3_600_000,
  errorsInSummaryMax: 3,
  /** What the answer takes for a record that failed, with as many errors as there can be. */
  answerBytesPerFailedRecord: 800,
  /** From this size on a body is parsed and checked in a thread of its own; below, the way there would cost more. */
  bodyBytesForWorker: 64 * 1024,
  workerYoungGenerationMb: 8,
  workerIdleMs: 30_000,
  /** Bodies in flight are bounded by their bytes as well; this is for a great many small ones. */
  uploadsWaitingMax: 10_000,

  // Replay of rejections

  rejectionsPerReplayMax: 50_000,
  /** A replay ends after this time with what it has done, and goes on from its cursor with the next request. */
  replayMs: 60_000,
  /** Of the records of a replayed batch; it has fewer than 1,000 where they are large. */
  replayBatchBytesMax: 4 * 1024 * 1024,
  /** How long a replay waits for another of the same type to finish a batch. */
  replayTurnMs: 5_000,

  // Idempotency keys

  idempotencyKeyCharactersMax: 255,
  idempotencyKeyLifeMs: 24 * 3_600_000,

  // Interactions

  interactionBodyBytesMax: 64 * 1024,
  interactionsPerStatementMax: 500,
  interactionWritersMax: 3,
  /** So many are flushed without waiting for the end of the event-loop turn: 0.79 of pgbench, against 0.68. */
  interactionsAtOnce: 24,
  interactionsWaitingMax: 10_000,
  /** One is refused where a reference is missing; again, where it was stored between two looks. */
  interactionAttemptsMax: 3,
  /** Ids that interactions may refer to without being looked for: so many, and for two generations at most. */
  knownIdsMax: 200_000,
  knownIdsPerTypeMax: 50_000,
  knownIdsGenerationMs: 300_000,
  interactionsPerPageMax: 1_000,
  interactionsPerPageDefault: 100,
  /** A list of interactions looks at so many rows at once, in so many partitions, and goes on for so long. */
  interactionRowsPerLookMax: 10_000,
  interactionDaysPerLookMax: 32,
  interactionsListMs: 1_000,
  interactionDaysAhead: 35,
  indexBuildMsMax: 3_600_000,

  // Keys, and what each organisation may take

  keyChangesIntervalMs: 2_000,
  /** How often a Citus coordinator is asked which worker has what. */
  nodesIntervalMs: 2_000,
  /** For so long no connection is tried to a worker that has refused one. */
  nodeLeftAloneMs: 10_000,
  /** If polling for key changes has failed for this long, cached keys are no longer trusted. */
  keyChangesUnknownMs: 4_000,
  keyUseNotedMs: 60_000,
  /** A cached key is looked up anew after this time, should the poll ever miss a change. */
  keyKnownMs: 600_000,
  keysKnownMax: 100_000,
  keyConnectionsMax: 3,
  keyLookUpsWaitingMax: 10_000,
  failedKeysPerMinuteMax: 120,
  failedKeysWindowSeconds: 60,
  requestsPerSecondMax: 100,
  interactionsPerSecondMax: 5_000,
  recordsPerSecondMax: 50_000,
  limitWindowSeconds: 2,
  redisTimeoutMs: 200,
  redisRetryMs: 1_000,
  bytesInFlightMax: 256 * 1024 * 1024,
  bytesInFlightPerOrganisationMax: 192 * 1024 * 1024,
  /** Of what is free, how much one organisation may have: alone, three quarters of all. */
  shareOfFreeBytesMax: 3,
  retryInFlightSeconds: 1,

  // Operator and admin API

  adminConnectionsMax: 2,
  adminBodyBytesMax: 64 * 1024,
  keyLabelCodePointsMax: 200,
  organisationNameCodePointsMax: 200,
  listedPerPageMax: 1_000,
  listedPerPageDefault: 100,
  auditEntriesMax: 10_000,
  auditEntriesDefault: 100,
  graceSecondsMax: 365 * 24 * 3_600,
  graceSecondsDefault: 24 * 3_600,

  // Maintenance

  /** One for the lease, one for what takes long and one for the rest. */
  maintenanceConnectionsMax: 3,
  maintenanceIntervalMs: 3_600_000,
  /** How soon something that failed is tried again. */
  maintenanceRetryMs: 60_000,
  maintenanceTickMs: 1_000,
  /** Who does maintenance: renewed in time, or another takes over after this. */
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  rollUpIntervalMs: 10_000,
  purgeRowsMax: 5_000,

  // A Citus cluster

  /**
   * Into how many parts the organisations fall: enough for 8 to 16 workers. Each is a table of its own for every table and
   * for every day of interactions, so a year of them takes 12,000 tables; with 128 it would be 47,000.
   */
  clusterShards: 32,
  clusterShardsMax: 1_024,
  clusterOrganisationsShown: 10,
  clusterProgressMs: 1_000,
} as const;
