/** The limits of a dry run. */
export const erasureLimits = {
  countMs: 10_000,
  /** If more ids would be erased, only some of their rows are counted. */
  countedIdsMax: 20_000,
  idsPerStatement: 1_000,
} as const;
