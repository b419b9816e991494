import { execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Cluster } from './cluster.ts';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const startTimeoutMs = 120_000;
const readyWithinMs = 240_000;

/** The built service, running in a separate process. */
export interface Service {
  readonly port: number;
  readonly pid: number;
  /** Returns the peak resident memory in bytes. */
  peakMemory(): number;
  /** Suspends the process, so that it uses no CPU time until it is resumed or stopped. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export function isBuilt(): boolean {
  return existsSync(main);
}

/** A database, and optionally the program of a different version. */
interface Target {
  readonly url: string;
  readonly main?: string;
}

export async function migrateWithService(target: Target): Promise<void> {
  await runCommand(target, 'migrate');
}

/** Runs a command and returns its output. */
export async function runCommand(target: Target, ...args: string[]): Promise<string> {
  const command = [target.main ?? main, ...args];
  return (await promisify(execFile)(process.execPath, command, { env: environmentOf(target) })).stdout;
}

/** Raises the limits, because one organisation sends everything and the limits are not being measured. */
const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
};

function environmentOf({ url }: Target): NodeJS.ProcessEnv {
  return { ...process.env, ...unlimited, DATABASE_URL: url, HOST: '127.0.0.1', PORT: '0' };
}

let started = 0;

/**
 * Starts the service with the default settings, unless the environment overrides them. The log goes to a file, much as it
 * goes to a pipe in production.
 */
export async function startService(
  cluster: Target & Pick<Cluster, 'folder'>,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const logFile = join(cluster.folder, `service-${++started}.log`);
  const log = openSync(logFile, 'a');
  // Run the service in its own process group, because Ctrl-C is meant for the bench, which then stops the service.
  const server = spawn(process.execPath, [cluster.main ?? main, 'serve'], {
    env: { ...environmentOf(cluster), ...env },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const hasEnded = () => server.exitCode !== null || server.signalCode !== null;
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    if (!hasEnded()) server.kill('SIGTERM');
    server.kill('SIGCONT');
    await ended;
  };
  const port = await untilListening(logFile, env.PORT, hasEnded).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    port,
    pid: server.pid as number,
    peakMemory() {
      const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    },
    pause() {
      if (!isStopping) server.kill('SIGSTOP');
    },
    resume: () => void server.kill('SIGCONT'),
    stop,
  };
}

/**
 * Waits until the service listens, and returns its port. The port is in the log, unless the log is turned off. In that case,
 * the port must be specified.
 */
async function untilListening(
  logFile: string,
  given: string | undefined,
  hasEnded: () => boolean,
): Promise<number> {
  const until = Date.now() + startTimeoutMs;
  while (Date.now() < until && !hasEnded()) {
    const port = /Server listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(logFile, 'utf8'))?.[1];
    if (port !== undefined) return Number(port);
    if (given !== undefined && (await isLive(given))) return Number(given);
    await sleep(50);
  }
  throw new Error(`the service did not start; it said: ${readFileSync(logFile, 'utf8').slice(-2_000)}`);
}

async function isLive(port: string): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/health/live`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Waits until the service is ready. A process that was paused has to notice that its database is still available. */
export async function untilReady({ port }: Service): Promise<void> {
  for (const endMs = Date.now() + readyWithinMs; Date.now() < endMs; await sleep(100))
    if ((await fetch(`http://127.0.0.1:${port}/health/ready`)).ok) return;
  throw new Error('the service is not ready again after it was paused');
}
