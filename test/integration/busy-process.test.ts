// @module-tag full

import { expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { watchCpu } from '../../src/reports/keep-report.ts';

/** How much of a core this process took while it ran the work. */
function shareTaken(work: () => void): number {
  const [beganMs, before] = [performance.now(), process.cpuUsage()];
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - beganMs);
}

function waitFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it('a process is busy while it takes most of a core', () => {
  const isBusy = watchCpu();
  const compute = () => {
    for (const endMs = performance.now() + limits.reportLookMs; performance.now() < endMs; );
  };
  // A machine that others use may give this process less than it wants, so the answer is compared with what it got.
  const busy = shareTaken(compute);
  if (Math.abs(busy - limits.reportBusyPart) > 0.1) expect(isBusy()).toBe(busy > limits.reportBusyPart);
  isBusy();
  const idle = shareTaken(() => waitFor(2 * limits.reportLookMs));
  expect(idle).toBeLessThan(0.3);
  expect(isBusy()).toBe(false);
});
