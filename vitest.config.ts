import { defineConfig } from 'vitest/config';

/** Where scripts/check.ts reads how long each file took. */
const resultsFile = process.env.TEST_RESULTS ?? '';

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: process.env.CITUS_URL ? ['test/support/drop-databases.ts'] : [],
    // Generous, for a machine that others slow down or stop for seconds: waiting longer costs nothing where all goes well.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    reporters: [process.env.CI ? 'dot' : 'default', ...(resultsFile ? ['json'] : [])],
    outputFile: { json: resultsFile },
    // A test file names its tags in its first lines: `// @module-tag full`.
    tags: [
      { name: 'full', description: 'Takes long or needs more than Node: `npm run check` leaves it out' },
      { name: 'postgres-15', description: 'Runs once more on the oldest PostgreSQL that is supported' },
      { name: 'pooler', description: 'Runs once more through PgBouncer in transaction mode' },
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['src/**/*.test.ts', 'test/{*,!(load)/**/*}.test.ts', 'client/test/**/*.test.ts'],
          // Many test files start several servers: more than two files at a time are too much for a small machine.
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
