import { execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Cluster } from './cluster.ts';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const startTimeoutMs = 30_000;

/** The built service, in a process of its own. */
export interface Service {
  readonly port: number;
  readonly pid: number;
  /** The most memory it has had resident, in bytes. */
  peakMemory(): number;
  stop(): Promise<void>;
}

export function isBuilt(): boolean {
  return existsSync(main);
}

export async function migrateWithService(cluster: Pick<Cluster, 'url'>): Promise<void> {
  await runCommand(cluster, 'migrate');
}

export async function runCommand(cluster: Pick<Cluster, 'url'>, ...args: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [main, ...args], { env: environmentOf(cluster) });
}

/** One organisation sends all there is to send; what it may send is not what is measured. */
const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
};

function environmentOf(cluster: Pick<Cluster, 'url'>): NodeJS.ProcessEnv {
  return { ...process.env, ...unlimited, DATABASE_URL: cluster.url, HOST: '127.0.0.1', PORT: '0' };
}

let started = 0;

/** Its settings are the defaults, or what the environment says. Its log goes to a file, as in production to a pipe. */
export async function startService(
  cluster: Pick<Cluster, 'url' | 'folder'>,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const logFile = join(cluster.folder, `service-${++started}.log`);
  const log = openSync(logFile, 'a');
  // In a process group of its own: Ctrl-C is for the bench, which then stops the service.
  const server = spawn(process.execPath, [main, 'serve'], {
    env: { ...environmentOf(cluster), ...env },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const hasEnded = () => server.exitCode !== null || server.signalCode !== null;
  const stop = async () => {
    if (!hasEnded()) server.kill('SIGTERM');
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
    stop,
  };
}

/** The log says which port was free; where it is quiet, the port is given. */
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
