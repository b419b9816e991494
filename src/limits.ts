/** Every bound of the service, its unit in its name. If operators may set it, this is the default; see settings.ts. */
export const limits = {
  // HTTP: connections, headers, bodies, answers

  headersBytesMax: 16 * 1024,
  bodyBytesMax: 32 * 1024 * 1024,
  /** The first buffer for a body without Content-Length; it doubles. */
  bodyBytesAtFirst: 16 * 1024,
  /** For a body where none is expected: enough to report it. */
  unexpectedBodyBytesMax: 1_024,
  /** How much of a refused body is still read, and for how long. */
  discardedBytesMax: 64 * 1024 * 1024,
  discardMs: 5_000,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  /** A connection without traffic in either direction: longer than any statement may take. */
  idleTimeoutMs: 180_000,
  connectionsMax: 15_000,
  connectionsCheckIntervalMs: 1_000,
  /** Below the 30 seconds after which container runtimes usually kill a process. */
  stopTimeoutMs: 25_000,
  /** How often a stopping process looks for idle connections. */
  stopIntervalMs: 100,
  /** How long a stopping process keeps a proxy's idle connection; deploy/nginx/intake.conf closes it earlier. */
  stopProxyIdleMs: 3_000,
  /** A stopping process closes its listeners in a turn of the event loop this short, if one comes in time. */
  stopTurnMs: 0.2,
  stopTurnWaitMs: 3_000,
  certificateIntervalMs: 2_000,
  /** A certificate expires soon if it has less time left than this, or than this part of its lifetime. */
  certificateSoonMs: 14 * 24 * 3_600_000,
  certificateSoonPart: 0.25,
  /** The most memory that a streamed answer takes, and how much is reserved for it. */
  streamedAnswerBytes: 4 * 1024 * 1024,
  /** A smaller answer fits into the kernel's socket buffer, whether or not the client reads it. */
  answerBytesForSocket: 64 * 1024,
  metricsConnectionsMax: 20,
  metricsTimeoutMs: 5_000,
  /** The share of requests that is traced if the caller does not decide. */
  tracedRatio: 0.01,
  tracedLinksMax: 128,
  tracesStopMs: 2_000,
  parameterProblemsMax: 20,
  fileBytesPerWrite: 64 * 1024,
  retryAfterSeconds: 5,

  // JSON

  /** Nesting levels of objects and arrays; no request needs more than three. */
  bodyDepthMax: 32,
  /** The body and its `records` are the two levels around a record. */
  recordDepthMax: 30,
  /** No field has a longer name, even with every character escaped. */
  fieldNameBytesMax: 512,
  /** Exports may have many unknown columns; each costs a look-up of its name. */
  fieldsPerRecordMax: 1_000,

  // The registry: values of fields

  textCodePointsMax: 1_000,
  branchListCodePointsMax: 20_000,
  interactionUserCodePointsMax: 255,
  /** Integers below it are epoch seconds, others milliseconds. */
  epochSecondsEnd: 100_000_000_000,
  errorsPerRecordMax: 5,
  unknownFieldNamesMax: 20,
  unknownFieldNameCharactersMax: 64,

  // PostgreSQL: connections and transactions

  databaseConnectTimeoutMs: 5_000,
  databaseIdleMs: 10 * 60_000,
  /** How much longer than PostgreSQL's own timeout we wait for a statement. */
  databaseGraceMs: 5_000,
  /** The share of the connections for uploads and reads that one organisation can hold at once. */
  connectionShareMax: 0.65,
  /** What its readers of changes can hold besides. */
  readersConnectionShareMax: 0.3,
  connectionsWaitingMax: 10_000,
  /** Together less than the 10 seconds within which an upload that waits is answered. */
  connectionWaitMs: 9_000,
  /** How long a transaction of a request may wait for a lock, less what it has waited for its connection. */
  lockWaitMs: 9_000,
  lockWaitMsMin: 500,
  /** Half a second less than is promised. */
  readinessTimeoutMs: 1_500,
  readinessReusedMs: 1_000,
  /** How long a scrape waits for the answer of readiness. */
  metricsReadyMs: 500,
  /** A process is not ready when writing has stalled for this long; the promise is 10 seconds. */
  stalledMs: 8_000,
  /** Nor when writes of this many organisations have failed within this time, because of the server, and none has succeeded. */
  failedOrganisationsMin: 2,
  serverFailuresMs: 10_000,
  /** Rows that readiness has PostgreSQL write to a temporary file, to see whether its disk is full. */
  probeRows: 50_000,
  batchAttemptsMax: 10,

  // Records: reading back

  recordsPerPageMax: 1_000,
  recordsPerPageDefault: 100,
  /** How many records a query scans, in the order of ids, for those that match a filter. */
  recordsPerScan: 10_000,
  /** How many records a query returns at most, and how many characters: some types have room for long texts. */
  recordsPerRead: 1_000,
  recordCharactersPerRead: 4 * 1024 * 1024,
  /** A page is answered after this time even if it is not full. */
  recordSearchMs: 1_000,

  // Receipts

  receiptsPerPageMax: 100,
  receiptsPerPageDefault: 20,
  receiptsKeptDays: 30,
  /** Receipts can be counted for so many days. */
  receiptDaysMax: 31,
  receiptDaysDefault: 14,
  weeklyPartitionsAhead: 4,

  // Rejections

  rejectionsPerPageMax: 1_000,
  rejectionsPerPageDefault: 100,
  rejectionPageBytesMax: 4 * 1024 * 1024,
  rejectionGroupsMax: 1_000,
  /** Up to this many rejections of a type, an upload fetches the ids of all of them and settles its own at once. */
  fewRejectionsMax: 100,
  /** How often rejections of stored records are removed if the type has more, how long it takes at most, and how many batches at once. */
  settleRejectionsIntervalMs: 2_000,
  settleRejectionsMs: 5_000,
  batchesPerSettling: 50,
  rejectionKindsPerBatchMax: 50,
  /** How many ids an erasure or an access request may have, and how large its body may be: each id has at most 255 characters of 4 bytes. */
  erasureIdsMax: 5_000,
  erasureBodyBytesMax: 6 * 1024 * 1024,
  erasuresPerPageMax: 1_000,
  erasuresPerPageDefault: 100,
  /** How often erasures and access requests go on, how long at most, and how much at once. */
  erasureIntervalMs: 1_000,
  erasureMs: 10_000,
  /** In a cluster, single interactions may be stored by a version of the suppressions that was read so long ago. */
  versionSeenMs: 250,
  versionsSeenMax: 100_000,
  erasureRowsPerScan: 20_000,
  ledgerEntriesPerRead: 10_000,
  erasureRowsPerStep: 2_000,
  erasureTextsPerStep: 2_000,
  erasureAnswersPerStep: 100,
  erasureChangesPerStep: 500,
  /** How much memory the filters of erased ids may take, and how many hashes are read at once. */
  suppressionBytesMax: 128 * 1024 * 1024,
  suppressionsPerRead: 100_000,
  /** Per organisation; beyond it a rejection is described by its first problem alone. */
  rejectionKindsMax: 2_000,
  rejectionKindsSummarisedMax: 10_000,
  rejectionKindLifeMs: 7 * 24 * 3_600_000,
  /** How many are discarded in one transaction, and after how long a call ends that has more to discard. */
  rejectionsPerDiscard: 10_000,
  discardRejectionsMs: 30_000,

  // Uploads

  recordsPerRequestMax: 5_000,
  coursesPerRequestMax: 1_000,
  recordsPerBatch: 1_000,
  /** How many records of a batch are looked up to tell whether it was sent before. */
  recordsPerSample: 32,
  /** A larger record fails; the others in its batch do not. */
  recordBytesMax: 64 * 1024,
  /** The size of everything in an upload beside `records`. */
  besideRecordsBytesMax: 64 * 1024,
  updatedAheadMs: 24 * 3_600_000,
  errorsInSummaryMax: 3,
  /** The answer's size per failed record, with the maximum of errors. */
  answerBytesPerFailedRecord: 800,
  /** An id in quotes, and a comma. */
  answerBytesPerInteraction: 39,
  /** Bodies of at least this size are checked in a worker thread; for smaller ones the transfer would cost more. */
  bodyBytesForWorker: 64 * 1024,
  workerYoungGenerationMb: 8,
  workerIdleMs: 30_000,
  /** Bodies in flight are also bounded by their bytes; this bound is for very many small ones. */
  uploadsWaitingMax: 10_000,

  // Replay of rejections

  rejectionsPerReplayMax: 50_000,
  /** A replay ends after this time; the next request continues from its cursor. */
  replayMs: 60_000,
  /** The size of the records in a replayed batch; it has fewer than 1,000 if they are large. */
  replayBatchBytesMax: 4 * 1024 * 1024,
  /** How long a replay waits for another of the same type to finish a batch. */
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
  /** Fewer in a cluster: planning costs it more than the rows do, so it gains by larger flushes. */
  interactionWritersPerNodeMax: 2,
  /** Rows in an `insert … values` in a cluster. An organisation with more sends arrays. */
  rowsWrittenOutMax: 24,
  /**
   * A queue of this size is flushed before the end of the event-loop turn: 0.79 of pgbench's rate, against 0.68
   * without.
   */
  interactionsAtOnce: 24,
  interactionsWaitingMax: 10_000,
  /** One that takes this long is always logged. */
  slowInteractionMs: 1_000,
  /** Cached ids, to which interactions may refer without a look-up: how many, and for two generations at most. */
  knownIdsMax: 200_000,
  knownIdsPerTypeMax: 50_000,
  knownIdsGenerationMs: 300_000,
  interactionsPerPageMax: 1_000,
  interactionsPerPageDefault: 100,
  /** A list of interactions reads this many rows at once, in this many partitions, for this long. */
  interactionRowsPerLookMax: 10_000,
  interactionDaysPerLookMax: 32,
  interactionsListMs: 1_000,
  interactionDaysAhead: 35,
  indexBuildMsMax: 3_600_000,

  // Changes: the log and the feed

  changesKeptDays: 7,
  changeDaysAhead: 28,
  changesNumberedAtOnce: 1_000,
  /** How many starts of PostgreSQL an organisation's log remembers; cursors from before them are too old. */
  changeEpochsKept: 100,
  /** How often changes get their numbers where nobody reads them. */
  numberChangesIntervalMs: 10_000,
  /** How many rows of the log are looked at together, and for how long a page goes on looking. */
  changesPerLook: 1_000,
  /** How many ids a stream fetches from the log at once. */
  changeIdsPerLook: 10_000,
  changesSearchMs: 1_000,
  changesPerPageMax: 1_000,
  /** How many pages are read beyond the one that a stream is getting. */
  changePagesAhead: 3,
  changesPerPageDefault: 100,
  /** How often a process asks whether there is something new, for all who wait for it. */
  changesPollMs: 250,
  /** A stream of changes says that it is alive, and ends after a while: its reader comes back with its cursor. */
  changeHeartbeatMs: 10_000,
  changeStreamMs: 600_000,
  /** What is held for one that waits. */
  changeStreamBytes: 64 * 1024,
  changeStreamsPerOrganisationMax: 20,

  // Reports

  reportDaysMax: 366,
  reportDaysDefault: 30,
  reportGroupsPerPageMax: 1_000,
  reportGroupsPerPageDefault: 100,
  /** How often maintenance counts changes for the report, and for how long. */
  reportIntervalMs: 10_000,
  reportMsPerRun: 5_000,
  /** A process that takes more than this part of a core counts for less time, in smaller steps. */
  reportBusyPart: 0.6,
  reportMsPerBusyRun: 500,
  reportIdsPerBusyStep: 2_000,
  /** For how long it looks at how busy the process is. */
  reportLookMs: 200,
  reportOrganisationsPerRun: 1_000,
  /** How long a step may take in all. It takes longer if one student has very many interactions. */
  reportStepMs: 15_000,
  /** What the statements that count may sort and hash in memory. */
  reportSortMemory: '64MB',
  /** How long an organisation waits after its counting failed; each failure in a row doubles it, up to the maximum. */
  reportPauseMs: 60_000,
  reportPauseMsMax: 3_600_000,
  /** How many rows of the change log, and how many ids, are counted in one transaction; and the least after failures. */
  reportChangesPerStep: 10_000,
  reportIdsPerStep: 10_000,
  reportIdsPerStepMin: 100,
  /** So many times as many where interactions are walked through, whose ids need not be read: larger steps are cheaper. */
  reportWalkFactor: 2,

  // Keys, and what each organisation may take

  keyChangesIntervalMs: 2_000,
  /** How often the coordinator of a cluster is asked where the shards are. */
  nodesIntervalMs: 2_000,
  /** How long no connection is tried to a node that has refused one. */
  nodeLeftAloneMs: 10_000,
  /** If polling for key changes has failed for this long, cached keys are no longer trusted. */
  keyChangesUnknownMs: 4_000,
  keyUseNotedMs: 60_000,
  /** A cached key is looked up again after this time, in case the poll ever misses a change. */
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
  /** Browser keys, for each client address: interactions a second, and bytes of bodies at once. */
  browserInteractionsPerSecondMax: 100,
  browserBytesInFlightMax: 4 * 1024 * 1024,
  /** An address may use one part in this many of its organisation's limit of interactions. */
  browserShareOfLimit: 4,
  /** How many addresses are counted; beyond it the one whose window began first is forgotten. */
  browserAddressesMax: 50_000,
  browserBatchBytesMax: 1024 * 1024,
  /** Answers to browser keys are sent in steps of this length, so their times do not show what was looked up. */
  browserAnswerStepMs: 100,
  browserOriginsMax: 10,
  /** A host name has 253 characters at most. */
  originCharactersMax: 267,
  /** How long a browser remembers the answer to a preflight; Chromium remembers none for longer. */
  preflightSeconds: 7_200,
  redisTimeoutMs: 200,
  redisRetryMs: 1_000,
  bytesInFlightMax: 256 * 1024 * 1024,
  bytesInFlightPerOrganisationMax: 192 * 1024 * 1024,
  /** An organisation may hold this many times what is free: alone, three quarters of all. */
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
  /** Keys in use that expire within this time are counted for an alert. */
  keysExpiringDays: 7,
  graceSecondsMax: 365 * 24 * 3_600,
  graceSecondsDefault: 24 * 3_600,

  // The console

  /** How long a session lasts at most; the functions of the database say the same. */
  consoleSessionSeconds: 12 * 3_600,
  /** Sessions of one admin token. */
  operatorSessionsMax: 100,
  consoleSignInBytesMax: 4_096,
  /** How long a link of the operator can be used, and what was begun with it lasts, unless something else is said. */
  consoleLinkMs: 3_600_000,

  // The operator's view

  /** How often each process writes what it does, and for whom. */
  activityIntervalMs: 60_000,
  /** Of more organisations than that in a minute, a process counts only the first. */
  activeOrganisationsMax: 100_000,
  busiestOrganisationsMax: 50,
  busiestDefault: 20,
  busiestMinutesMax: 60,
  busiestMinutesDefault: 5,
  processesListedMax: 1_000,
  organisationSearchCodePointsMax: 63,

  // Maintenance

  /** One for each loop of maintenance, so none waits for another's statement. */
  choreConnectionsMax: 5,
  /** Separate, so the leader renews its lease however slow its chores are. */
  leaseConnectionsMax: 1,
  maintenanceIntervalMs: 3_600_000,
  /** How soon a failed chore is retried. */
  maintenanceRetryMs: 60_000,
  maintenanceTickMs: 1_000,
  /** The leader's lease: if it is not renewed in time, another process takes over. */
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  rollUpIntervalMs: 10_000,
  purgeRowsMax: 5_000,
  deletedOrganisationsKeptDays: 30,

  // A cluster

  /**
   * The number of shards: enough for 8 to 16 workers. Each has a table of its own for every distributed table and every
   * day of interactions, so a year takes 12,000 tables; with 128 shards it would be 47,000.
   */
  clusterShards: 32,
  clusterShardsMax: 1_024,
  clusterOrganisationsShown: 10,
  clusterProgressMs: 1_000,
} as const;
