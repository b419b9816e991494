export const retentionLimits = {
  /** The limit for dropping days. Expired rows are deleted afterwards, including those of days that are left. */
  dropMs: 30 * 60_000,
  /** Per statement. A receipt counts once, but its responses are deleted too. */
  rowsPerStep: 10_000,
  receiptsPerStep: 1_000,
  /** A day's rows are counted before it is dropped. */
  detachMsMax: 600_000,
} as const;
