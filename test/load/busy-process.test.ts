// @module-tag full

import { expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { watchCpu } from '../../src/reports/keep-report.ts';

it('a process is busy while it takes most of a core', async () => {
  const isBusy = watchCpu();
  const work = () => {
    for (const endMs = performance.now() + limits.reportLookMs; performance.now() < endMs; );
    return isBusy();
  };
  // Where others use the machine, it takes a while until this process gets so much.
  await expect.poll(work, { timeout: 30_000 }).toBe(true);
  await expect.poll(isBusy, { interval: 2 * limits.reportLookMs, timeout: 30_000 }).toBe(false);
});
