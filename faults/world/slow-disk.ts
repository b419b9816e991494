import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('slow-disk.c', import.meta.url));

/** A library that makes a process wait for its disk. */
export interface SlowDisk {
  /** The environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Delays each flush by this time from now on. */
  delay(ms: number): void;
}

/** Compiles the library. Returns undefined if there is no compiler. */
export function makeSlowDisk(folder: string): SlowDisk | undefined {
  const [library, file] = [join(folder, 'slow-disk.so'), join(folder, 'slow-disk')];
  const { status } = spawnSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl']);
  if (status !== 0) return undefined;
  const delay = (ms: number) => writeFileSync(file, String(ms));
  delay(0);
  return { env: { LD_PRELOAD: library, SLOW_DISK: file }, delay };
}
