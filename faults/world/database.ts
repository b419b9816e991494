import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  embeddedBinaries,
  type LocalPostgres,
  startLocalPostgres,
  unprivilegedAccount,
} from '../../scripts/local-postgres.ts';

interface Setup {
  readonly settings: Readonly<Record<string, string>>;
  /** More of its environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** PostgreSQL inherits the environment of this process. */
async function startServer(folder: string, { settings, env = {} }: Setup): Promise<LocalPostgres> {
  Object.assign(process.env, env);
  try {
    return await startLocalPostgres(folder, embeddedBinaries(), { ...settings });
  } finally {
    for (const name of Object.keys(env)) delete process.env[name];
  }
}

/** A PostgreSQL server with its own data, which faults can kill, freeze, replace and fill. */
export class Database {
  readonly #folder: string;
  readonly setup: Setup;
  #server: LocalPostgres;

  private constructor(folder: string, server: LocalPostgres, setup: Setup) {
    this.#folder = folder;
    this.#server = server;
    this.setup = setup;
  }

  static async start(folder: string, setup: Setup): Promise<Database> {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    return new Database(folder, await startServer(folder, setup), setup);
  }

  /** Moves the write-ahead log to another folder, which may be on another disk. */
  async moveLog(folder: string): Promise<void> {
    await this.end('SIGQUIT');
    const log = join(this.#data, 'pg_wal');
    cpSync(log, folder, { recursive: true });
    rmSync(log, { recursive: true });
    symlinkSync(folder, log);
    giveAway(this.#folder);
    giveAway(this.#folder, folder);
    await this.restart();
  }

  /** Whether the log is in another folder. A restore brings it back. */
  get hasMovedLog(): boolean {
    return lstatSync(join(this.#data, 'pg_wal')).isSymbolicLink();
  }

  get url(): string {
    return this.#server.url('postgres');
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get password(): string {
    return new URL(this.url).password;
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  /** Runs something with a superuser's own connection, which no fault touches. */
  async connected<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: this.url });
    client.on('error', () => {});
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end().catch(() => {});
    }
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return this.connected(async (client) => (await client.query<Row>(text, values)).rows);
  }

  get postmaster(): number {
    const file = join(this.#data, 'postmaster.pid');
    return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : 0;
  }

  #everyProcess(): number[] {
    const postmaster = this.postmaster;
    if (!(postmaster > 0)) return [];
    const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(postmaster)], { encoding: 'utf8' });
    return [postmaster, ...stdout.trim().split(/\s+/).filter(Boolean).map(Number)];
  }

  /** Sends a signal to all of its processes, starting with the postmaster, so that it cannot start more processes. */
  signal(signal: NodeJS.Signals): void {
    for (const pid of this.#everyProcess()) trySignal(pid, signal);
  }

  /** Ends the server with this signal and waits until all of its processes are gone. */
  async end(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void> {
    const all = this.#everyProcess();
    for (const pid of signal === 'SIGKILL' ? all : all.slice(0, 1)) trySignal(pid, signal);
    while (all.some((pid) => existsSync(`/proc/${pid}/exe`))) await sleep(20);
  }

  /** Starts the server on its data again, on another port. */
  async restart(): Promise<void> {
    this.#server = await startServer(this.#folder, this.setup);
  }

  /** Copies the running server's data, as a base backup does. */
  async copyTo(folder: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    const copy = join(folder, 'data');
    await this.connected(async (client) => {
      await client.query(`select pg_backup_start('faults', true)`);
      const skipped = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot']);
      cpSync(this.#data, copy, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !skipped.has(path.slice(this.#data.length + 1)),
      });
      const { rows } = await client.query<{ label: string }>(
        'select labelfile as label from pg_backup_stop(false)',
      );
      // The log is copied last, so that it contains everything up to the end of the backup.
      cpSync(realpathSync(join(this.#data, 'pg_wal')), join(copy, 'pg_wal'), { recursive: true });
      mkdirSync(join(copy, 'pg_replslot'), { recursive: true });
      writeFileSync(join(copy, 'backup_label'), rows[0]?.label ?? '');
    });
    cpSync(join(this.#folder, 'password'), join(folder, 'password'));
    giveAway(folder);
  }

  /** Replaces the data with a copy, and starts the server on it. */
  async replaceBy(folder: string): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.#data, { recursive: true, force: true });
    cpSync(join(folder, 'data'), this.#data, { recursive: true, verbatimSymlinks: true });
    giveAway(this.#folder);
    await this.restart();
  }

  /** Deletes the data of a server that has ended. */
  remove(): void {
    rmSync(this.#data, { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    this.signal('SIGCONT');
    await this.end('SIGKILL');
  }
}

/** Gives the copied files to the account that PostgreSQL runs as. */
function giveAway(folder: string, data = join(folder, 'data')): void {
  const account = unprivilegedAccount();
  chmodSync(data, 0o700);
  if (!account) return;
  chownSync(join(folder, 'password'), account.uid, account.gid);
  const { status } = spawnSync('chown', ['-R', `${account.uid}:${account.gid}`, data]);
  if (status !== 0) throw new Error(`cannot give ${data} to the account of PostgreSQL`);
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already exited.
  }
}
