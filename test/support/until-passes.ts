import { vi } from 'vitest';

/** Repeats a check until it passes, however slow the machine is. On its own, `vi.waitFor` would give up after a second. */
export const untilPasses = <T>(check: () => T | Promise<T>, intervalMs = 100): Promise<T> =>
  vi.waitFor(check, { timeout: 240_000, interval: intervalMs });
