export const retentionLimits = {
  /** Expired rows are not deleted until the days are dropped. Those of days that are left are deleted one by one. */
  dropMs: 30 * 60_000,
  /** Receipts are deleted with their responses. */
  rowsPerStep: 10_000,
  receiptsPerStep: 1_000,
  /** A day's rows are counted before it is dropped. */
  detachMsMax: 600_000,
} as const;
