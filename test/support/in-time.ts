import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'vitest';
import { processorTicks } from './process-state.ts';
import { slowness } from './slowness.ts';

/** How long an operation took, and how long it may take. */
export interface Timed {
  readonly what: string;
  readonly ms: number;
  readonly promisedMs: number;
}

const attemptsMax = 3;
/** Timings count only if other processes used at most this share of the CPU time. */
export const takenMax = 0.1;

/**
 * Checks durations. Other load can only make the service slower, so an attempt that takes too long is repeated, and one
 * attempt in time is enough. Each limit is extended by the longest event loop delay in this process, which is otherwise
 * idle, and on a slower machine than the one that the times are promised on, by as much as the machine is slower.
 */
export async function expectInTime(measure: () => Promise<readonly Timed[]>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();
    const shareTaken = watchOthers();
    const measured = await measure();
    lag.disable();
    const lagMs = lag.max / 1e6;
    const isLate = ({ ms, promisedMs }: Timed, times = 1) => ms >= promisedMs * times + lagMs;
    if (!measured.some((one) => isLate(one))) return;
    const times = slowness();
    const late = measured.filter((one) => isLate(one, times));
    if (late.length === 0) return;
    const taken = shareTaken();
    const told =
      late.map(({ what, ms, promisedMs }) => `${what}: ${ms.toFixed(0)} of ${promisedMs} ms`).join(', ') +
      `; this process was late by ${lagMs.toFixed(0)} ms, others took ${(100 * taken).toFixed(0)} %, ` +
      `the machine is ${times.toFixed(1)} times slower`;
    console.log(`attempt ${attempt} was late: ${told}`);
    if (attempt < attemptsMax) continue;
    if (taken > takenMax) return console.log('times need a machine of which others take less');
    expect.fail(told);
  }
}

/**
 * Returns a function that returns the share of CPU time that others have used since this call: other virtual machines
 * on the host, or other local processes.
 */
export function watchOthers(): () => number {
  const before = processorTicks();
  return () => {
    const after = processorTicks();
    const ticks = Math.max(1, after.all - before.all);
    return Math.max((after.stolen - before.stolen) / ticks, shareNotGot());
  };
}

/** Returns the share of CPU time that this process does not get while it is in a busy loop. */
function shareNotGot(): number {
  const [beganMs, before] = [performance.now(), process.threadCpuUsage()];
  while (performance.now() - beganMs < 200);
  const { user, system } = process.threadCpuUsage(before);
  return 1 - (user + system) / 1_000 / (performance.now() - beganMs);
}
