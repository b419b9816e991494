import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Bench } from './case.ts';

const command = fileURLToPath(new URL('../client/dist/command/main.js', import.meta.url));

/** Runs `intake upload` and returns its duration and peak memory. */
export async function uploadFile(
  { service, tenant }: Bench,
  exitCode: number,
  ...args: readonly string[]
): Promise<{ seconds: number; megabytes: number }> {
  const env = { ...process.env, INTAKE_URL: `http://127.0.0.1:${service.port}`, INTAKE_KEY: tenant.key };
  const startedMs = performance.now();
  const child = spawn(process.execPath, [command, 'upload', ...args], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit').then(([code]) => ({
    code,
    seconds: (performance.now() - startedMs) / 1000,
  }));
  let megabytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    const status = readStatus(child.pid);
    megabytes = Math.max(megabytes, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024);
    await sleep(100);
  }
  const { code, seconds } = await ended;
  if (code !== exitCode) throw new Error(`intake upload ended with ${code}`);
  return { seconds, megabytes };
}

/** Returns a process's status, or an empty string once the process has ended. */
function readStatus(pid: number | undefined): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}
