// quotas/: what organisations with a quota have stored.

export const quotaLimits = {
  /** Twice a minute, so that with the poll of every process a quota is enforced within a minute. */
  intervalMs: 30_000,
  quotasPerRead: 1_000,
  /** The size of rows: how many are measured of an organisation and type, in how many places, and for how long in a run. */
  rowsSampled: 1_000,
  samplePlaces: 4,
  samplingMs: 2_000,
} as const;
