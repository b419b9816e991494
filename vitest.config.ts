import { defineConfig } from 'vitest/config';

/** Where whoever runs the tests wants to read which failed. */
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
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['src/**/*.test.ts', 'test/{*,!(load)/**/*}.test.ts', 'client/test/**/*.test.ts'],
          // Two servers and a PostgreSQL beside each test file are as much as a small machine carries.
          maxWorkers: 2,
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
