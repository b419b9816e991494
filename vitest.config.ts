import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Where scripts/check.ts reads how long each file took. */
const resultsFile = process.env.TEST_RESULTS ?? '';

/** Starts the files tagged `long` first: a run would otherwise end with one of them, and an idle core. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /^\/\/ @module-tag long$/m.test(readFileSync(moduleId, 'utf8'));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: process.env.CITUS_URL ? ['test/support/drop-databases.ts'] : [],
    // Generous, for a machine that others slow down or stop for seconds: waiting longer costs nothing where all goes well.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    // Tests that run at the same time wait more than they compute.
    maxConcurrency: 10,
    expect: { poll: { timeout: 30_000 } },
    reporters: [process.env.CI ? 'dot' : 'default', ...(resultsFile ? ['json'] : [])],
    outputFile: { json: resultsFile },
    // A test file names its tags in its first lines: `// @module-tag full`.
    tags: [
      { name: 'full', description: 'Takes long or needs more than Node: `npm run check` leaves it out' },
      { name: 'long', description: 'Starts before the others' },
      { name: 'postgres-15', description: 'Runs once more on the oldest PostgreSQL that is supported' },
      { name: 'pooler', description: 'Runs once more through PgBouncer in transaction mode' },
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/{*,!(load)/**/*}.test.ts', 'client/test/*.test.ts'],
          // Many test files start several servers: more than two files at a time are too much for a small machine.
          maxWorkers: Number(process.env.TEST_WORKERS ?? 2),
        },
      },
      {
        extends: true,
        // These start nothing, so that many files can share a process.
        test: {
          name: 'pure',
          include: ['src/**/*.test.ts', 'client/test/files/*.test.ts', 'console/test/*.test.ts'],
          isolate: false,
          maxWorkers: Number(process.env.TEST_WORKERS ?? 2),
        },
      },
      {
        extends: true,
        // What is held against a clock has the machine for itself, after everything else.
        test: {
          name: 'load',
          include: ['test/load/**/*.test.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
