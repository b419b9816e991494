/** The limits of a dry run. */
export const erasureLimits = {
  countMs: 10_000,
  /** Rows of further ids are not counted. */
  countedIdsMax: 20_000,
  /** Per search of an index. */
  idsPerStatement: 1_000,
} as const;
