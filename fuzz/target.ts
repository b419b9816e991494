import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { embeddedBinaries, startLocalPostgres } from '../scripts/local-postgres.ts';
import { disposable } from '../test/support/disposable.ts';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const startTimeoutMs = 120_000;
export const adminToken = 'intake_admin_87IHxiTVcYEOzpWq1eibIu0m29igBQnyz3kcGA5pE1P0yMlSz';

/** The built service and its admin API, running on their own empty PostgreSQL server. */
export interface Target {
  readonly url: string;
  readonly adminUrl: string;
  /** A folder for the run's files, which is deleted when the target is stopped. */
  readonly folder: string;
  readonly hasEnded: () => boolean;
  /** Returns the number of responses per status in the service's log, and the log lines that report a service error. */
  readLog(): Promise<{ answers: Map<number, number>; faults: string[] }>;
  stop(): Promise<void>;
}

export function isBuilt(): boolean {
  return existsSync(main);
}

/** These settings raise limits that would refuse requests before the requests can find anything. */
const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
  FAILED_KEYS_PER_MINUTE_MAX: '1000000000',
};

export async function startTarget(): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-fuzz-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), disposable);
  const stopPostgres = async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const owner = postgres.url('postgres');
    const env = { ...process.env, DATABASE_URL: owner };
    await promisify(execFile)(process.execPath, [main, 'migrate'], { env });
    const service = await startService(folder, await createLogins(owner));
    return {
      ...service,
      folder,
      async stop() {
        await service.stop();
        await stopPostgres();
      },
    };
  } catch (error) {
    await stopPostgres();
    throw error;
  }
}

/** Creates the logins. As in production, the service has minimal privileges, so a missing grant shows up as a 500. */
async function createLogins(ownerUrl: string): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  const { password } = new URL(ownerUrl);
  const login = async (role: string) => {
    await client.query(`create role fuzz_${role} login password '${password}' in role ${role}`);
    return ownerUrl.replace('//postgres:', `//fuzz_${role}:`);
  };
  const urls = {
    DATABASE_URL: await login('intake_serve'),
    ADMIN_DATABASE_URL: await login('intake_admin'),
  };
  await client.query(
    `insert into admin_tokens (name, token_sha256, role, created_by) values ('fuzz', sha256('${adminToken}'), 'full', 'fuzz')`,
  );
  await client.end();
  return urls;
}

async function startService(folder: string, databases: Record<string, string>) {
  const logFile = join(folder, 'service.log');
  const log = openSync(logFile, 'a');
  const settings = {
    ...unlimited,
    ...databases,
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'info',
    ERASURE_KEYS: 'a key of 32 characters or more for the fuzzer',
    LAKE_URL: pathToFileURL(join(folder, 'lake')).href,
    LAKE_DELAY_SECONDS: '1',
  };
  // Run each process in its own process group, because Ctrl-C is meant for the fuzzer, which then stops the processes.
  const start = (command: string) =>
    spawn(process.execPath, [main, command], {
      env: { ...process.env, ...settings },
      detached: true,
      stdio: ['ignore', log, log],
    });
  const server = start('serve');
  const lake = start('lake');
  closeSync(log);
  const ended = Promise.all(
    [server, lake].map((one) => new Promise<void>((resolve) => one.once('exit', () => resolve()))),
  );
  const hasEnded = () => server.exitCode !== null || server.signalCode !== null;
  const stop = async () => {
    lake.kill('SIGTERM');
    if (!hasEnded()) server.kill('SIGTERM');
    await ended;
  };
  try {
    const adminUrl = await addressIn(logFile, 'Admin API', hasEnded);
    const url = await addressIn(logFile, 'Server', hasEnded);
    return {
      url,
      adminUrl,
      hasEnded,
      readLog: () => readLog(logFile),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readLog(file: string) {
  const answers = new Map<number, number>();
  const faults: string[] = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const { level, status } = parseLine(line);
    if (status !== undefined) answers.set(status, (answers.get(status) ?? 0) + 1);
    if (level >= errorLevel) faults.push(line);
  }
  return { answers: new Map([...answers].sort(([a], [b]) => a - b)), faults };
}

/** Parses a log line. If the line is not JSON, Node wrote it when it crashed. */
function parseLine(line: string): { level: number; status?: number } {
  try {
    return JSON.parse(line);
  } catch {
    return { level: errorLevel };
  }
}

const errorLevel = 50;

async function addressIn(logFile: string, who: string, hasEnded: () => boolean): Promise<string> {
  const pattern = new RegExp(`${who} listening at (http://127\\.0\\.0\\.1:\\d+)`);
  for (const until = Date.now() + startTimeoutMs; Date.now() < until && !hasEnded(); await sleep(50)) {
    const address = pattern.exec(readFileSync(logFile, 'utf8'))?.[1];
    if (address !== undefined) return address;
  }
  throw new Error(`the service did not start; it said: ${readFileSync(logFile, 'utf8').slice(-2_000)}`);
}
