import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readStat, ticksPerSecond } from '../../bench/cpu-time.ts';
import { embeddedBinaries, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { servingLogin } from './database.ts';
import { type LocalPostmaster, localPostmaster } from './local-postmaster.ts';
import { queryDatabase } from './query-database.ts';
import { runCommand } from './run-command.ts';

/** The processes that the lake's load tests run: a separate PostgreSQL server and `intake-server lake`. */

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** A login other than the service's, so that the lake's share of PostgreSQL's CPU time can be measured. */
const lakeLogin = 'intake_lake';

export interface OwnPostgres {
  /** The URL for connecting to the migrated database as its owner. */
  readonly url: string;
  /** The URL with which the lake process connects. */
  readonly lakeUrl: string;
  /** The postmaster, or undefined if this process may not kill PostgreSQL. */
  readonly postmaster: LocalPostmaster | undefined;
  stop(): Promise<void>;
}

export async function startOwnPostgres(settings: Record<string, string>): Promise<OwnPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-lake-load-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), settings);
  const url = postgres.url('postgres');
  await runCommand(['migrate'], { DATABASE_URL: url });
  const { password } = new URL(url);
  for (const login of [servingLogin, lakeLogin])
    await queryDatabase(url, `create role ${login} login password '${password}' in role intake_serve`);
  const ofLake = new URL(url);
  ofLake.username = lakeLogin;
  const postmaster = await localPostmaster(url);
  return {
    url,
    lakeUrl: ofLake.href,
    postmaster,
    async stop() {
      await postmaster?.kill();
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts `intake-server lake` and waits until it is writing. */
export async function startLakeProcess(
  { url, lakeUrl: databaseUrl }: OwnPostgres,
  lakeUrl: string,
  env: Record<string, string> = {},
): Promise<ChildProcess> {
  // A killed process keeps its slots for 15 s. Free them so that the tests do not have to wait.
  await queryDatabase(url, `update lake_slots set holder = null, ends_at = '-infinity'`);
  await queryDatabase(url, 'delete from lake_processes');
  const started = spawn(process.execPath, [main, 'lake'], {
    env: { ...process.env, DATABASE_URL: databaseUrl, LAKE_URL: lakeUrl, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: started.stdout });
  const ended = once(started, 'exit').then(() => false);
  const writes = new Promise<boolean>((resolve) => {
    lines.on('line', (line) => line.includes('Writing lakes') && resolve(true));
  });
  // If its database or store is down, the process exits. Restart it, as systemd would do.
  if (await Promise.race([writes, ended])) return started;
  return startLakeProcess({ url, lakeUrl: databaseUrl } as OwnPostgres, lakeUrl, env);
}

const processes = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

/** Returns the CPU seconds of a process and its children, including children that have exited. */
export function cpuSecondsOf(pid: number): number {
  const stats = processes().flatMap((name) => {
    const stat = readStat(name);
    return stat ? [{ ...stat, pid: Number(name) }] : [];
  });
  const ticksOf = (one: (typeof stats)[number]): number =>
    stats
      .filter(({ parent }) => parent === one.pid)
      .reduce((sum, child) => sum + ticksOf(child), one.own + one.ofEndedChildren);
  const found = stats.find((one) => one.pid === pid);
  return found ? ticksOf(found) / ticksPerSecond : 0;
}

/** Adds up the CPU time of the lake's database connections, including connections that close in the meantime. */
export class LakeConnections {
  readonly #url: string;
  readonly #first = new Map<number, number>();
  readonly #last = new Map<number, number>();

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * Samples the connections. This must be called often, because the work that a connection does after its last sample is
   * not counted.
   */
  async look(): Promise<void> {
    const rows = await queryDatabase<{ pid: number }>(
      this.#url,
      'select pid from pg_stat_activity where usename = $1',
      [lakeLogin],
    );
    const isFirst = this.#last.size === 0;
    for (const { pid } of rows) {
      const own = readStat(String(pid))?.own;
      if (own === undefined) continue;
      // A new connection starts at zero, unlike the connections that existed at the first call.
      if (!this.#last.has(pid)) this.#first.set(pid, isFirst ? own : 0);
      this.#last.set(pid, own);
    }
  }

  get seconds(): number {
    const ticks = [...this.#last].reduce((sum, [pid, own]) => sum + own - (this.#first.get(pid) ?? 0), 0);
    return ticks / ticksPerSecond;
  }
}

/** Returns the share of all processors' time that was idle between two samples. */
export function idleShare(before: number[], after: number[]): number {
  const spent = after.map((ticks, at) => ticks - (before[at] ?? 0));
  // The columns are user, nice, system, idle, iowait, irq, softirq and steal.
  const all = spent.slice(0, 8).reduce((sum, ticks) => sum + ticks, 0);
  return ((spent[3] ?? 0) + (spent[4] ?? 0)) / all;
}

export function processorTicks(): number[] {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  return line.trim().split(/\s+/).slice(1).map(Number);
}
