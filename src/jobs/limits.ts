export const jobLimits = {
  /** How long a round lasts, of jobs or of another chore, and how many jobs have a turn at the same time. */
  roundMs: 10_000,
  jobsPerRound: 1_000,
  /** How soon a round takes up work that arrived after it began. */
  findAgainMs: 500,
  /** How soon a step that waits looks again. */
  lookAgainMs: 100,
  /** How long a job pauses after its first failure. The pause doubles with each further failure. */
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
} as const;
