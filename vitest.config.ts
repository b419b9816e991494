import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two servers and a PostgreSQL beside each test file are as much as a small machine carries.
    maxWorkers: 2,
    reporters: process.env.CI ? ['dot'] : ['default'],
  },
});
