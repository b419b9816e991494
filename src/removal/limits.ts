// removal/: removes organisations that were deleted some time ago, step by step.

export const removalLimits = {
  intervalMs: 10_000,
  rowsPerStep: 2_000,
  /** Pauses for this many times a step's duration, so that the removal does not slow down other work. */
  pauseFactor: 3,
} as const;
