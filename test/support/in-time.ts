import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'vitest';
import { processorTicks } from './process-state.ts';

/** How long something took, and how long it may take. */
export interface Timed {
  readonly what: string;
  readonly ms: number;
  readonly promisedMs: number;
}

const attemptsMax = 3;
/** The share of the processor that others may take before times say nothing. */
export const takenMax = 0.1;

/**
 * Holds promised times against the clock. Whatever else runs on the machine only makes things slower, and what the service
 * does, it does each time: so a late attempt is repeated, and one in time is enough. Each may be as much later as this
 * process, which only waits, was itself.
 */
export async function expectInTime(measure: () => Promise<readonly Timed[]>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();
    const shareTaken = watchOthers();
    const measured = await measure();
    lag.disable();
    const lagMs = lag.max / 1e6;
    const late = measured.filter(({ ms, promisedMs }) => ms >= promisedMs + lagMs);
    if (late.length === 0) return;
    const taken = shareTaken();
    const told =
      late.map(({ what, ms, promisedMs }) => `${what}: ${ms.toFixed(0)} of ${promisedMs} ms`).join(', ') +
      `; this process was late by ${lagMs.toFixed(0)} ms, others took ${(100 * taken).toFixed(0)} %`;
    console.log(`attempt ${attempt} was late: ${told}`);
    if (attempt < attemptsMax) continue;
    if (taken > takenMax) return console.log('times need a machine of which others take less');
    expect.fail(told);
  }
}

/** Returns how to tell which share of the processor others took since: other machines on the same host, or processes here. */
export function watchOthers(): () => number {
  const before = processorTicks();
  return () => {
    const after = processorTicks();
    return Math.max((after.stolen - before.stolen) / (after.all - before.all), shareNotGot());
  };
}

/** Of a processor that this process could use all of, what it does not get. */
function shareNotGot(): number {
  const [beganMs, before] = [performance.now(), process.threadCpuUsage()];
  while (performance.now() - beganMs < 200);
  const { user, system } = process.threadCpuUsage(before);
  return 1 - (user + system) / 1_000 / (performance.now() - beganMs);
}
