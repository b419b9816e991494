export const retentionLimits = {
  /** For how long a run drops days, and then deletes rows: others with old data wait for it. The next run continues. */
  runMs: 30 * 60_000,
  /** How many expired rows are deleted at once: interactions, and receipts, which have their answers with them. */
  rowsPerStep: 10_000,
  receiptsPerStep: 1_000,
  /** A day that everybody has let expire is counted before it is dropped. */
  detachMsMax: 600_000,
} as const;
