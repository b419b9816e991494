// removal/: removes organisations that were deleted some time ago, step by step.

export const removalLimits = {
  /** How often maintenance looks for organisations to remove, and for how long a run removes rows. */
  intervalMs: 10_000,
  runMs: 60_000,
  rowsPerStep: 2_000,
  /** After a step the removal pauses for this many times as long as the step took, so that others are not slowed down. */
  pauseFactor: 3,
} as const;
