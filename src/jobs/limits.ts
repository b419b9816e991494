export const jobLimits = {
  /** The length of a round of jobs, and by default of any other chore. */
  roundMs: 10_000,
  jobsPerRound: 1_000,
  /** How soon a round takes up work that arrived after it began. */
  findAgainMs: 500,
  /** How soon a step that waits looks again. */
  lookAgainMs: 100,
  /** After a job's first failure. The pause doubles with each further failure. */
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
} as const;
