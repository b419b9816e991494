import { readdirSync, readFileSync } from 'node:fs';
import type { Bench } from './case.ts';

/** The number of clock ticks per second in Linux's /proc. */
export const ticksPerSecond = 100;

interface Measured {
  readonly service: Pick<Bench['service'], 'pid'>;
  readonly cluster: Pick<Bench['cluster'], 'postmasterPid'>;
}

/** Returns the total CPU seconds used so far by the service and PostgreSQL. */
export function cpuSeconds(measured: Measured): number {
  const { service, postgres } = cpuSecondsOfEach(measured);
  return service + postgres;
}

/**
 * Returns the CPU seconds used so far by the service and by PostgreSQL. PostgreSQL's time is the sum of its first process,
 * its running children, and its finished children, whose time the first process has inherited.
 */
export function cpuSecondsOfEach({ service, cluster }: Measured): { service: number; postgres: number } {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const ticks = { service: 0, postgres: 0 };
  for (const pid of processes) {
    const stat = readStat(pid);
    if (!stat) continue;
    if (Number(pid) === service.pid) ticks.service += stat.own;
    if (stat.parent === cluster.postmasterPid) ticks.postgres += stat.own;
    if (Number(pid) === cluster.postmasterPid) ticks.postgres += stat.own + stat.ofEndedChildren;
  }
  return { service: ticks.service / ticksPerSecond, postgres: ticks.postgres / ticksPerSecond };
}

export interface Stat {
  readonly parent: number;
  readonly own: number;
  readonly ofEndedChildren: number;
}

/** Reads a process's statistics. Returns undefined if the process has ended. */
export function readStat(pid: string): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The process name is in parentheses and may contain any character. After it comes the state, field 3 of proc(5).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return { parent: field(4), own: field(14) + field(15), ofEndedChildren: field(16) + field(17) };
}
