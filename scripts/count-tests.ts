/** The parts of Vitest's JSON report that the counts depend on. */
export interface TestReport {
  readonly testResults: readonly {
    /** The path of the test file. */
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

/** A stage that ended, with its report if it runs tests and wrote one. */
export interface EndedStage {
  readonly passed: boolean;
  /** The test files that the stage had to run. Other stages, such as the linter, have none. */
  readonly files?: readonly string[];
  readonly report?: TestReport;
}

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/**
 * Counts the tests of a stage. Whatever went wrong outside the tests, such as a hook, a file that is not in the report or the
 * linter, counts as a failure, so that `0 failed` is never printed for a stage that did not pass.
 */
export function countTests({ passed, files, report }: EndedStage): Counts {
  const results = report?.testResults ?? [];
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { status, assertionResults } of results) {
    const failedBefore = counts.failed;
    for (const one of assertionResults) {
      if (one.status === 'passed') counts.passed++;
      else if (one.status === 'skipped' || one.status === 'todo') counts.skipped++;
      else counts.failed++;
    }
    const isWrong = status !== 'passed' || assertionResults.length === 0;
    if (isWrong && counts.failed === failedBefore) counts.failed++;
  }
  if (files !== undefined) {
    counts.failed += files.filter((file) => !results.some(({ name }) => name.endsWith(`/${file}`))).length;
    if (counts.passed + counts.failed === 0) counts.failed++;
  }
  if (!passed && counts.failed === 0) counts.failed++;
  return counts;
}

export function addCounts(counts: readonly Counts[]): Counts {
  const sum = (of: keyof Counts) => counts.reduce((total, one) => total + one[of], 0);
  return { passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') };
}
