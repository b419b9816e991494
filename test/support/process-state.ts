import { readFileSync, writeFileSync } from 'node:fs';

/** Returns a process's resident memory in megabytes: the current value, or the peak since `forgetPeak`. */
export function residentMegabytes(pid: number | undefined, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}

export function forgetPeak(pid: number | undefined): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Returns the number of connections to a local server that the system reports as established at both ends. */
export function connectionsTo(url: string): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const established = new RegExp(`^ *\\d+: [0-9A-F]+:${port} \\S+ 01 `);
  return ['tcp', 'tcp6']
    .flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n'))
    .filter((line) => established.test(line)).length;
}

/**
 * Returns CPU ticks on all processors since boot: the total, and the ticks that the host gave to other machines (see
 * proc(5)).
 */
export function processorTicks(): { readonly all: number; readonly stolen: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
}
