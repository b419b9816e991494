/** Operators can override some of these (see settings.ts). */
export const limits = {
  // HTTP: connections, headers, bodies, responses

  headersBytesMax: 16 * 1024,
  bodyBytesMax: 32 * 1024 * 1024,
  /** Without Content-Length. The buffer doubles as needed. */
  bodyBytesAtFirst: 16 * 1024,
  /** For a request that should have no body: just large enough to report the mistake. */
  unexpectedBodyBytesMax: 1_024,
  /** How much of a refused body is still read, and for how long. */
  discardedBytesMax: 64 * 1024 * 1024,
  discardMs: 5_000,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  /** Longer than any statement may take with the default DATABASE_TIMEOUT_MS. */
  idleTimeoutMs: 180_000,
  connectionsMax: 15_000,
  connectionsCheckIntervalMs: 1_000,
  /** Shorter than the 30 seconds after which container runtimes usually kill a process. */
  stopTimeoutMs: 25_000,
  stopIntervalMs: 100,
  /** deploy/nginx/intake.conf closes a proxy's idle connection earlier. */
  stopProxyIdleMs: 3_000,
  /** A stopping process closes its listeners once an event-loop turn is this short, or after the maximum wait. */
  stopTurnMs: 0.2,
  stopTurnWaitMs: 3_000,
  certificateIntervalMs: 2_000,
  /** A certificate counts as expiring soon if less than this time and less than this share of its lifetime are left. */
  certificateSoonMs: 14 * 24 * 3_600_000,
  certificateSoonPart: 0.25,
  /** Reserved for each streamed response, which never needs more. */
  streamedAnswerBytes: 4 * 1024 * 1024,
  /** A smaller response fits into the kernel's socket buffer, whether or not the client reads it. */
  answerBytesForSocket: 64 * 1024,
  metricsConnectionsMax: 20,
  metricsTimeoutMs: 5_000,
  /** Applies if the caller does not decide whether to trace. */
  tracedRatio: 0.01,
  tracedLinksMax: 128,
  tracesStopMs: 2_000,
  parameterProblemsMax: 20,
  fileBytesPerWrite: 64 * 1024,
  retryAfterSeconds: 5,

  // JSON

  /** No request needs more than three levels of objects and arrays. */
  bodyDepthMax: 32,
  /** Two levels fewer than in a body, because a record is nested in the body object and its `records` array. */
  recordDepthMax: 30,
  /** No known field name is longer, even if every character in it is escaped. */
  fieldNameBytesMax: 512,
  /** Exports from other systems may have many unknown columns. Each of them costs a name lookup. */
  fieldsPerRecordMax: 1_000,

  // The registry: field values

  textCodePointsMax: 1_000,
  branchListCodePointsMax: 20_000,
  interactionUserCodePointsMax: 255,
  /** Integers below this value are epoch seconds. All others are milliseconds. */
  epochSecondsEnd: 100_000_000_000,
  errorsPerRecordMax: 5,
  unknownFieldNamesMax: 20,
  unknownFieldNameCharactersMax: 64,

  // PostgreSQL: connections and transactions

  databaseConnectTimeoutMs: 5_000,
  databaseIdleMs: 10 * 60_000,
  /** We wait this much longer than PostgreSQL's own statement timeout. */
  databaseGraceMs: 5_000,
  /** The maximum share of the connections that one organisation can use for uploads and reads. */
  connectionShareMax: 0.65,
  /** The additional share of the connections for an organisation's feed readers. */
  readersConnectionShareMax: 0.3,
  connectionsWaitingMax: 10_000,
  /** Shorter than the 10 seconds within which every waiting upload gets a response. */
  connectionWaitMs: 9_000,
  /** The time that the request waited for a connection is subtracted. */
  lockWaitMs: 9_000,
  lockWaitMsMin: 500,
  /** Half a second below the documented limit. */
  readinessTimeoutMs: 1_500,
  readinessReusedMs: 1_000,
  metricsReadyMs: 500,
  /** A process is not ready if writes have stalled for this long. The documented limit is 10 seconds. */
  stalledMs: 8_000,
  /** A process is not ready if this many organisations' writes got server errors in this time and no write succeeded. */
  failedOrganisationsMin: 2,
  serverFailuresMs: 10_000,
  /** Rows that the readiness check writes to a temporary file, to detect a full disk. */
  probeRows: 50_000,
  batchAttemptsMax: 10,

  // Reading stored records

  recordsPerPageMax: 1_000,
  recordsPerPageDefault: 100,
  /** Scanned in id order, to find the records that match a filter. */
  recordsPerScan: 10_000,
  /** Characters are limited too, because some types have long strings. */
  recordsPerRead: 1_000,
  recordCharactersPerRead: 4 * 1024 * 1024,
  /** After this time, a page is sent even if it is not full. */
  recordSearchMs: 1_000,

  // Receipts

  receiptsPerPageMax: 100,
  receiptsPerPageDefault: 20,
  receiptsKeptDays: 30,
  receiptDaysMax: 31,
  receiptDaysDefault: 14,
  weeklyPartitionsAhead: 4,

  // Rejections

  rejectionsPerPageMax: 1_000,
  rejectionsPerPageDefault: 100,
  rejectionPageBytesMax: 4 * 1024 * 1024,
  /**
   * After a page, the organisation's next long read waits for as long as the page took, up to this time. Otherwise, readers
   * that never pause would keep the event loop busy, however little a page costs.
   */
  rejectionsRestMsMax: 100,
  rejectionGroupsMax: 1_000,
  /** If a type has at most this many rejections, an upload reads all their ids and settles its own immediately. */
  fewRejectionsMax: 100,
  /** Otherwise, maintenance settles them at this interval, for this long, with this many batches per transaction. */
  settleRejectionsIntervalMs: 2_000,
  settleRejectionsMs: 5_000,
  batchesPerSettling: 50,
  rejectionKindsPerBatchMax: 50,
  /** The maximum number of ids in an erasure or access request, and the body size for ids of 255 characters of 4 bytes. */
  erasureIdsMax: 5_000,
  erasureBodyBytesMax: 6 * 1024 * 1024,
  openErasureIdsMax: 50_000,
  erasuresPerPageMax: 1_000,
  erasuresPerPageDefault: 100,
  erasureIntervalMs: 1_000,
  /** In a cluster, the maximum age of the suppressions against which single interactions are checked. */
  versionSeenMs: 250,
  versionsSeenMax: 100_000,
  peoplePerSearch: 1_000,
  erasureRowsPerScan: 20_000,
  ledgerEntriesPerRead: 10_000,
  erasureRowsPerStep: 2_000,
  erasureTextsPerStep: 2_000,
  erasureAnswersPerStep: 100,
  erasureChangesPerStep: 500,
  suppressionBytesMax: 128 * 1024 * 1024,
  suppressionsPerRead: 100_000,
  /** If an organisation has more kinds of rejections than this, a rejection is described only by its first problem. */
  rejectionKindsMax: 2_000,
  rejectionKindsSummarisedMax: 10_000,
  rejectionKindLifeMs: 7 * 24 * 3_600_000,
  rejectionsPerDiscard: 10_000,
  discardRejectionsMs: 30_000,

  // Uploads

  recordsPerRequestMax: 5_000,
  coursesPerRequestMax: 1_000,
  recordsPerBatch: 1_000,
  /** How many of a batch's records are looked up to find out whether the batch was sent before. */
  recordsPerSample: 32,
  /** A record that is larger fails, but the other records in its batch do not. */
  recordBytesMax: 64 * 1024,
  besideRecordsBytesMax: 64 * 1024,
  updatedAheadMs: 24 * 3_600_000,
  errorsInSummaryMax: 3,
  /** The response size per failed record, if each record has the maximum number of errors. */
  answerBytesPerFailedRecord: 800,
  /** The size of a quoted id and the comma after it. */
  answerBytesPerInteraction: 39,
  /** Bodies of at least this size are checked in a worker thread. Smaller ones cost more to transfer than to check. */
  bodyBytesForWorker: 64 * 1024,
  workerYoungGenerationMb: 8,
  workerIdleMs: 30_000,
  /** Waiting uploads are also limited by their total size. This limit matters if there are very many small uploads. */
  uploadsWaitingMax: 10_000,

  // Runs: more in runs/limits.ts

  /** Per organisation, of the runs that were opened within a day. Older ones were probably abandoned. */
  openRunsMax: 100,

  // Replay of rejections

  rejectionsPerReplayMax: 50_000,
  /** The next request continues from the cursor. */
  replayMs: 60_000,
  /** The size limit of a replayed batch. If its records are large, the batch has fewer than 1,000 of them. */
  replayBatchBytesMax: 4 * 1024 * 1024,
  /** How long a replay waits for another replay of the same type to finish a batch. */
  replayTurnMs: 5_000,

  // Idempotency keys

  idempotencyKeyCharactersMax: 255,
  idempotencyKeyLifeMs: 24 * 3_600_000,
  /** How long a flush of interactions waits for a key that another transaction is claiming. */
  claimWaitMs: 100,

  // Interactions

  interactionBodyBytesMax: 64 * 1024,
  interactionsPerStatementMax: 500,
  interactionWritersMax: 3,
  /** Fewer writers mean larger flushes, which suits a cluster, because planning costs more there than writing rows. */
  interactionWritersPerNodeMax: 2,
  /** Rows per `insert … values` in a cluster. If an organisation has more rows, they are sent as arrays. */
  rowsWrittenOutMax: 24,
  /** A queue of this size is flushed at once: throughput reached 0.79 of pgbench's rate, compared with 0.68 without. */
  interactionsAtOnce: 24,
  interactionsWaitingMax: 10_000,
  /** Of interactions that are recorded normally, one in this many is logged. */
  interactionsPerLogLine: 100,
  /** An interaction that takes at least this long is always logged. */
  slowInteractionMs: 1_000,
  /** An entry is kept for at most two generations. */
  knownIdsMax: 200_000,
  knownIdsPerTypeMax: 50_000,
  knownIdsGenerationMs: 300_000,
  interactionsPerPageMax: 1_000,
  interactionsPerPageDefault: 100,
  /** A query that lists interactions reads this many rows in this many partitions. A page takes at most this long. */
  interactionRowsPerLookMax: 10_000,
  interactionDaysPerLookMax: 32,
  interactionsListMs: 1_000,
  interactionDaysAhead: 35,
  indexBuildMsMax: 3_600_000,

  // Changes: the log and the feed

  changesKeptDays: 7,
  changeDaysAhead: 28,
  changesNumberedAtOnce: 1_000,
  /** How many PostgreSQL restarts an organisation's log remembers. Cursors from before these restarts are rejected. */
  changeEpochsKept: 100,
  /** Without readers. */
  numberChangesIntervalMs: 10_000,
  changesPerLook: 1_000,
  changeIdsPerLook: 10_000,
  changesSearchMs: 1_000,
  changesPerPageMax: 1_000,
  changePagesAhead: 3,
  changesPerPageDefault: 100,
  /** One poll serves all waiting streams. */
  changesPollMs: 250,
  /** Readers reconnect with their cursor. */
  changeHeartbeatMs: 10_000,
  changeStreamMs: 600_000,
  /** Memory reserved for each idle stream. */
  changeStreamBytes: 64 * 1024,
  changeStreamsPerOrganisationMax: 20,

  // Reports

  reportDaysMax: 366,
  reportDaysDefault: 30,
  reportGroupsPerPageMax: 1_000,
  reportGroupsPerPageDefault: 100,
  reportIntervalMs: 10_000,
  reportMsPerRun: 5_000,
  /** If a process uses more than this share of a core, it counts for less time and in smaller steps. */
  reportBusyPart: 0.6,
  reportMsPerBusyRun: 500,
  reportIdsPerBusyStep: 2_000,
  /** CPU sampling window. */
  reportLookMs: 200,
  reportOrganisationsPerRun: 1_000,
  /** Steps are slow if a single student has very many interactions. */
  reportStepMs: 15_000,
  reportSortMemory: '64MB',
  /** Doubles with each failed step of an organisation, up to the maximum. */
  reportPauseMs: 60_000,
  reportPauseMsMax: 3_600_000,
  reportChangesPerStep: 10_000,
  reportIdsPerStep: 10_000,
  /** After a failure, steps have fewer ids, but at least this many. */
  reportIdsPerStepMin: 100,
  /** Multiplies the step size when all interactions are read in order, because larger steps are cheaper there. */
  reportWalkFactor: 2,

  // Keys, and each organisation's share

  keyChangesIntervalMs: 2_000,
  /** How often the coordinator of a cluster is polled for shard locations. */
  nodesIntervalMs: 2_000,
  /** How long to avoid a node after it refused a connection. */
  nodeLeftAloneMs: 10_000,
  /** If polling for key changes has failed for this long, cached keys are no longer trusted. */
  keyChangesUnknownMs: 4_000,
  keyUseNotedMs: 60_000,
  /** A cached key is looked up again after this time, in case the poll has missed a change. */
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
  /** Per client address. */
  browserInteractionsPerSecondMax: 100,
  browserBytesInFlightMax: 4 * 1024 * 1024,
  /** An address may use the organisation's interaction limit divided by this number. */
  browserShareOfLimit: 4,
  /** If more addresses send requests, the one with the oldest window is dropped. */
  browserAddressesMax: 50_000,
  browserBatchBytesMax: 1024 * 1024,
  /** Responses to browser keys are delayed to a multiple of this time, so that their timing reveals no lookup results. */
  browserAnswerStepMs: 100,
  browserOriginsMax: 10,
  /** Enough for a scheme, a host name of 253 characters, and a port. */
  originCharactersMax: 267,
  /** The maximum that Chromium allows. */
  preflightSeconds: 7_200,
  redisTimeoutMs: 200,
  redisRetryMs: 1_000,
  bytesInFlightMax: 256 * 1024 * 1024,
  bytesInFlightPerOrganisationMax: 192 * 1024 * 1024,
  /** An organisation may use this many times the free bytes. If it is the only one, that is three quarters of the total. */
  shareOfFreeBytesMax: 3,
  retryInFlightSeconds: 1,

  // Operator and admin API

  adminConnectionsMax: 2,
  adminBodyBytesMax: 64 * 1024,
  keyLabelCodePointsMax: 200,
  organisationNameCodePointsMax: 200,
  listedPerPageMax: 1_000,
  listedPerPageDefault: 100,
  auditEntriesPerRead: 1_000,
  auditEntriesDefault: 100,
  /** Active keys that expire within this time are counted, for an alert. */
  keysExpiringDays: 7,
  graceSecondsMax: 365 * 24 * 3_600,
  graceSecondsDefault: 24 * 3_600,

  // The console

  /** The database functions use the same value. */
  consoleSessionSeconds: 12 * 3_600,
  /** Per admin token. */
  operatorSessionsMax: 100,
  consoleSignInBytesMax: 4_096,
  /** Also how long the link's session lasts, unless the operator specifies a time. */
  consoleLinkMs: 3_600_000,

  // The operator's view

  activityIntervalMs: 60_000,
  /** Further organisations are not counted. */
  activeOrganisationsMax: 100_000,
  busiestOrganisationsMax: 50,
  busiestDefault: 20,
  busiestMinutesMax: 60,
  busiestMinutesDefault: 5,
  processesListedMax: 1_000,
  organisationSearchCodePointsMax: 63,

  // Maintenance

  /** Each maintenance loop has its own connection, so that none waits for another loop's statement. */
  choreConnectionsMax: 6,
  /** The lease has its own connection, so that slow chores never delay its renewal. */
  leaseConnectionsMax: 1,
  maintenanceIntervalMs: 3_600_000,
  maintenanceRetryMs: 60_000,
  maintenanceTickMs: 1_000,
  /** The duration of the leader's lease. If it is not renewed in time, another process takes over. */
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  rollUpIntervalMs: 10_000,
  purgeRowsMax: 5_000,
  deletedOrganisationsKeptDays: 30,

  // A cluster

  /**
   * The number of shards, which is enough for 8 to 16 workers. Each shard has its own table for every distributed table
   * and for every day of interactions, so a year takes 12,000 tables. With 128 shards, it would take 47,000.
   */
  clusterShards: 32,
  clusterShardsMax: 1_024,
  clusterOrganisationsShown: 10,
  clusterProgressMs: 1_000,
} as const;
