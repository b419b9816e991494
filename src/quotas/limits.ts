// quotas/: measures the usage of organisations that have a quota.

export const quotaLimits = {
  /**
   * Usage is measured twice a minute, and each process polls for the results, so that a quota is enforced within a
   * minute.
   */
  intervalMs: 30_000,
  quotasPerRead: 1_000,
  /**
   * Limits for sampling row sizes: the number of rows per organisation and type, the number of positions, and the time per
   * run.
   */
  rowsSampled: 1_000,
  samplePlaces: 4,
  samplingMs: 2_000,
} as const;
