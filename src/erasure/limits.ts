/** The limits of a dry run. */
export const erasureLimits = {
  countMs: 10_000,
  /** If more ids would be erased, only the rows of some of them are counted. */
  countedIdsMax: 20_000,
  /** The number of ids per search of an index. */
  idsPerStatement: 1_000,
} as const;
