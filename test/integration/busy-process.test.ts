// @module-tag full

import { expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { watchCpu } from '../../src/reports/keep-report.ts';

/** Returns the share of a core that this process used during the work. */
function shareTaken(work: () => void): number {
  const [beganMs, before] = [performance.now(), process.cpuUsage()];
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - beganMs);
}

function waitFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it('a process is busy while it uses most of a core', () => {
  const isBusy = watchCpu();
  const compute = () => {
    for (const endMs = performance.now() + limits.reportLookMs; performance.now() < endMs; );
  };
  // On a shared machine, this process may get less CPU than it could use, so compare with the CPU time that it got.
  const busy = shareTaken(compute);
  if (Math.abs(busy - limits.reportBusyPart) > 0.1) expect(isBusy()).toBe(busy > limits.reportBusyPart);
  isBusy();
  const idle = shareTaken(() => waitFor(2 * limits.reportLookMs));
  expect(idle).toBeLessThan(0.3);
  expect(isBusy()).toBe(false);
});
