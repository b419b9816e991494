export const runLimits = {
  nameCodePointsMax: 200,
  clientVersionCodePointsMax: 100,
  filesMax: 100,
  fileNameCodePointsMax: 255,
  /** Enough for 100 files with names of 255 characters, each of them escaped in JSON. */
  bodyBytesMax: 512 * 1024,
  /** `limits.openRunsMax` counts the runs that were opened within this time. */
  openMs: 24 * 3_600_000,
  /** A run without requests and heartbeats for this long is interrupted. */
  interruptedMs: 15 * 60_000,
  heartbeatMs: 60_000,
  fileClaimDays: 400,
  /** With an organisation. They are in the manifest, which may have 16 MiB. */
  fileClaimsMovedMax: 50_000,
  /** Requests get their ids from the clocks of processes, which differ from the clock that times the run by less. */
  clocksApartMs: 3_600_000,
  /** Rejections are found by run only up to this many requests with failed records, and about this many such records. */
  failedRequestsMax: 5_000,
  failedRecordsMax: 500_000,
  perPageMax: 100,
  perPageDefault: 20,
} as const;
