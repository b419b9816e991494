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
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { embeddedBinaries, startLocalPostgres } from '../src/cli/database/local-postgres.ts';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const startTimeoutMs = 120_000;
export const adminToken = 'intake_admin_87IHxiTVcYEOzpWq1eibIu0m29igBQnyz3kcGA5pE1P0yMlSz';

/** The built service with its admin API, on an empty PostgreSQL of its own. */
export interface Target {
  readonly url: string;
  readonly adminUrl: string;
  /** For files of the run; it goes when the target is stopped. */
  readonly folder: string;
  readonly hasEnded: () => boolean;
  /** How many answers of each status its log tells of, and the lines that tell of a fault of its own. */
  readLog(): Promise<{ answers: Map<number, number>; faults: string[] }>;
  stop(): Promise<void>;
}

export function isBuilt(): boolean {
  return existsSync(main);
}

/** Limits that would only turn away what is sent to find something else. */
const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
  FAILED_KEYS_PER_MINUTE_MAX: '1000000000',
};

export async function startTarget(): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-fuzz-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), { fsync: 'off' });
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

/** As in earnest, the service may do no more than it has to: a grant that is missing is then a 500. */
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
  };
  // In a process group of its own: Ctrl-C is for the fuzzer, and the service is stopped afterwards.
  const server = spawn(process.execPath, [main, 'serve'], {
    env: { ...process.env, ...settings },
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

/** What is not JSON, Node wrote as it ended. */
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
