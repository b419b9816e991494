import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for a process to end and returns its peak memory as reported by Linux. */
export async function peakMegabytesOf(running: ChildProcess): Promise<number> {
  let peak = 0;
  while (running.exitCode === null && running.signalCode === null) {
    peak = Math.max(peak, megabytesOf(running.pid));
    await sleep(20);
  }
  return peak;
}

function megabytesOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
