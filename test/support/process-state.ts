import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';

/** The resident memory of a process, in megabytes: now, or at most since `forgetPeak`. */
export function residentMegabytes(pid: number | undefined, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}

export function forgetPeak(pid: number | undefined): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** How many sockets a process has open, of whatever kind. */
export function openSockets(pid: number | undefined): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith('socket:');
    } catch {
      // It was closed since.
      return false;
    }
  }).length;
}
