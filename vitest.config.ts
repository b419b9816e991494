import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The file in which scripts/check.ts finds how long each test file took. */
const resultsFile = process.env.TEST_RESULTS ?? '';

/**
 * Starts the files tagged `long` first. Otherwise, a run would end with one of them running while the other core is idle.
 */
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
    // Tests start thousands of processes, and a cache of the compiled code saves a tenth of the CPU time of their start.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url)) },
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: process.env.CITUS_URL ? ['test/support/drop-databases.ts'] : [],
    // The timeouts are generous, because a machine may be several times slower, or paused for seconds. They cost nothing if
    // all goes well, so only the long forms of tests have their own.
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
    teardownTimeout: 240_000,
    // Concurrent tests spend more time waiting than computing.
    maxConcurrency: 10,
    expect: { poll: { timeout: 240_000, interval: 100 } },
    reporters: [process.env.CI ? 'dot' : 'default', ...(resultsFile ? ['json'] : [])],
    outputFile: { json: resultsFile },
    // A test file lists its tags in its first lines, for example `// @module-tag full`.
    tags: [
      { name: 'full', description: 'Takes long or needs more than Node: `npm run check` leaves it out' },
      { name: 'long', description: 'Starts before the others' },
      { name: 'postgres-15', description: 'Runs once more on the oldest PostgreSQL that is supported' },
      { name: 'waiting', description: 'A load test that mostly waits: runs next to the other load tests' },
      { name: 'pooler', description: 'Runs once more through PgBouncer in transaction mode' },
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/{*,!(load)/**/*}.test.ts', 'client/test/*.test.ts'],
          // Many test files start several servers, so more than two files at the same time are too much for a small machine.
          maxWorkers: Number(process.env.TEST_WORKERS ?? 2),
        },
      },
      {
        extends: true,
        // These tests start no servers, so many files can share a process.
        test: {
          name: 'pure',
          include: [
            'src/**/*.test.ts',
            'faults/**/*.test.ts',
            'bench/**/*.test.ts',
            'client/test/files/*.test.ts',
            'console/test/*.test.ts',
          ],
          isolate: false,
          maxWorkers: Number(process.env.TEST_WORKERS ?? 2),
        },
      },
      {
        extends: true,
        // Tests with a time limit run alone on the machine, after all other tests.
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
