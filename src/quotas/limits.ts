// quotas/: measures the usage of organisations that have a quota.

export const quotaLimits = {
  /** Each process polls for the results, so a quota is enforced within a minute. */
  intervalMs: 30_000,
  quotasPerRead: 1_000,
  /** Rows per organisation and type, positions, and the time per run. */
  rowsSampled: 1_000,
  samplePlaces: 4,
  samplingMs: 2_000,
} as const;
