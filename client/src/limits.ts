/** All of the library's limits. */
export const limits = {
  /** The maximum number of concurrent requests in one upload. */
  requestsInFlightMax: 6,
  /** The service splits a request into batches of this many records and stores each batch in its own transaction. */
  recordsPerBatch: 1_000,
  /**
   * The maximum number of bytes of JSON in a request. The service accepts 32 MiB, but pending requests have to fit in
   * memory.
   */
  bytesPerRequestMax: 4_000_000,
  /**
   * The timeout of one attempt. It is longer than the longest time that the service takes to receive and answer a request.
   */
  attemptTimeoutMs: 150_000,
  /** How long to wait for an upload's other responses after the service has refused the key in one of them. */
  refusalWaitMs: 10_000,
  /** The maximum number of ids in one erasure, and the maximum length of a user id. */
  idsPerErasureMax: 5_000,
  userIdCharactersMax: 255,
  /** How many times a replay is retried while another replay is running. The service waits 5 seconds each time. */
  replayTurnsMax: 6,
  /** A request that has been failing for this long is abandoned. */
  retryForMs: 300_000,
  /** While earlier erasures are still being carried out, an erasure is retried this many times as long. */
  erasureRetryFactor: 12,
  /** How many answers that look like a success but are not from Intake are taken for a passing fault of a proxy. */
  foreignAnswersMax: 3,
  backoffFirstMs: 500,
  backoffMaxMs: 30_000,
  /**
   * Browsers allow 64 KiB in total for requests that outlive the page. The part that is not used here is left for other
   * scripts.
   */
  keepaliveBytesMax: 60_000,
  /**
   * The maximum number of bytes of JSON in the queue of unanswered interactions. Further interactions wait until there is
   * room.
   */
  interactionBytesQueuedMax: 16 * 1024 * 1024,
  /**
   * How long a batch is kept for the next page. The service remembers a key for 24 hours after the first attempt. The 15
   * minutes are a margin for a batch that is retried for several minutes.
   */
  keptForMs: (24 * 60 - 15) * 60_000,
  /**
   * How long a request of a killed upload may still be under way, after the last line of its journal. The upload may have
   * retried the request for `retryForMs`, and a proxy and the service may have taken `attemptTimeoutMs` for the last attempt.
   */
  underWayForMs: 15 * 60_000,
  /** After how long without a request a run is said to be still running. The service waits for 15 minutes. */
  heartbeatMs: 5 * 60_000,
  /** How long to try to end a run of which nothing was stored. */
  abandonForMs: 2_000,
  /** How long an upload waits for the service's time before it starts. */
  serviceTimeWaitMs: 10_000,
  /** The change feed sends a line every ten seconds, so a connection that is silent for this long is dead. */
  changesSilenceMs: 45_000,
  /** The maximum number of concurrent downloads per table, and how long a download may go without receiving data. */
  filesInFlightMax: 4,
  downloadSilenceMs: 60_000,
  /** The maximum number of files on one page of a table's file list, and in the whole list. */
  lakeFilesPerPage: 10_000,
  lakeFilesMax: 1_000_000,
  /** How many times in a row a pull may restart because files have disappeared, without downloading any file in between. */
  pullRestartsMax: 10,
  /**
   * The maximum size of a response that is read into memory. The longest possible response is for a replay in which 50,000
   * records failed again.
   */
  answerBytesMax: 64 * 1024 * 1024,
  /** The maximum length of a line in a streamed response. The service accepts records of up to 64 KiB. */
  lineCharactersMax: 1024 * 1024,
  /** How often the holder of a lock touches it, and after how long without a touch another machine removes the lock. */
  lockTouchedEveryMs: 2_000,
  lockWatchedForMs: 15_000,
  /** The longest timeout that timers support. Timers with a longer timeout fire immediately. */
  waitMaxMs: 2 ** 31 - 1,
};
