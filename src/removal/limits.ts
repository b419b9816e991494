// removal/: removes organisations that were deleted some time ago, step by step.

export const removalLimits = {
  /** How often maintenance looks for organisations to remove. */
  intervalMs: 10_000,
  rowsPerStep: 2_000,
  /**
   * After each step, the removal pauses for this many times the step's duration, so that it does not slow down other
   * work.
   */
  pauseFactor: 3,
} as const;
