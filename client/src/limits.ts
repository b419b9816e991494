/** Every bound of the library. */
export const limits = {
  /** Requests of one upload under way at once. */
  requestsInFlightMax: 6,
  /** The service stores a request in batches of this many records, each in its own transaction. */
  recordsPerBatch: 1_000,
  /** Bytes of JSON. The service takes 32 MiB, but requests under way have to fit in memory. */
  bytesPerRequestMax: 4_000_000,
  /** Longer than the service allows for receiving and answering a request. */
  attemptTimeoutMs: 150_000,
  /** If the service refuses the key, how long to wait for the answers to other requests of the upload. */
  refusalWaitMs: 10_000,
  /** The service takes this many ids in one erasure, and users with this many characters. */
  idsPerErasureMax: 5_000,
  userIdCharactersMax: 255,
  /** How often a replay asks again while another replay has its turn. The service waits 5 seconds each time. */
  replayTurnsMax: 6,
  /** A request that keeps failing for this long is given up. */
  retryForMs: 300_000,
  backoffFirstMs: 500,
  backoffMaxMs: 30_000,
  /** Browsers send at most 64 KiB of bodies at once that outlive the page; a little is left for other scripts. */
  keepaliveBytesMax: 60_000,
  /** Bytes of JSON that are held for interactions without an answer. What comes then waits until there is room. */
  interactionBytesQueuedMax: 16 * 1024 * 1024,
  /** The service remembers a key for 24 hours from its first attempt, and a batch may be retried for minutes. */
  keptForMs: (24 * 60 - 15) * 60_000,
  /** The change feed has a line every ten seconds: after this long without one the connection is dead. */
  changesSilenceMs: 45_000,
  /** Bytes of an answer that is read whole. The longest is that of a replay: 50,000 records that failed again. */
  answerBytesMax: 64 * 1024 * 1024,
  /** Characters of a line in a streamed answer. The service takes no record of more than 64 KiB. */
  lineCharactersMax: 1024 * 1024,
  /** A longer timeout makes timers fire at once. */
  waitMaxMs: 2 ** 31 - 1,
};
