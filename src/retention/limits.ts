export const retentionLimits = {
  /**
   * The time limit for dropping days. Expired rows are not deleted until then. Those of days that are left are deleted one
   * by one.
   */
  dropMs: 30 * 60_000,
  /** How many expired interactions, and how many expired receipts with their responses, a statement deletes at most. */
  rowsPerStep: 10_000,
  receiptsPerStep: 1_000,
  /** The time limit for dropping a day. The day's rows are counted before it is dropped. */
  detachMsMax: 600_000,
} as const;
