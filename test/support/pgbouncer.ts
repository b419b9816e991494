import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { unprivilegedAccount } from '../../scripts/local-postgres.ts';
import { freePort } from './free-port.ts';

const program = '/usr/sbin/pgbouncer';
export const pgBouncerIsInstalled = spawnSync(program, ['--version']).status === 0;

/** PgBouncer in transaction mode in front of a PostgreSQL server, for all of the server's databases and logins. */
export interface PgBouncer {
  readonly port: number;
  /** Returns the URL of the same database through PgBouncer. */
  url(databaseUrl: string): string;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer with the pgbouncer.ini from docs/operating/setup.md, except for paths, logins and the number of
 * sessions.
 */
export async function startPgBouncer(
  superuserUrl: string,
  poolSize: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const { port: postgresPort, username, password } = new URL(superuserUrl);
  const folder = mkdtempSync(join(tmpdir(), 'intake-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const users = join(folder, 'userlist.txt');
  writeFileSync(users, `"${username}" "${password}"\n`);
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    documented({
      intake: undefined,
      '*': `host=127.0.0.1 port=${postgresPort} auth_user=${username}`,
      listen_port: String(port),
      auth_file: users,
      default_pool_size: String(poolSize),
      // The tests use many databases, one after another, so idle connections are closed early.
      server_idle_timeout: '5',
      unix_socket_dir: '',
      ...settings,
    }),
  );
  const server = spawn(program, [file], { ...unprivilegedAccount(), stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.on('data', (said) => {
    log += said;
  });
  const ended = once(server, 'exit');
  const stop = async () => {
    server.kill('SIGINT');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = (databaseUrl: string) => Object.assign(new URL(databaseUrl), { port }).href;
  for (let attempt = 0; !(await answers(url(superuserUrl))); attempt++) {
    if (attempt === 4_800 || server.exitCode !== null) {
      await stop();
      throw new Error(`PgBouncer did not start:\n${log}`);
    }
    await sleep(50);
  }
  return { port, url, stop };
}

/** Returns the configuration recommended to operators, with these lines replaced. */
function documented(settings: Readonly<Record<string, string | undefined>>): string {
  const page = readFileSync(fileURLToPath(new URL('../../docs/operating/setup.md', import.meta.url)), 'utf8');
  const ini = /```ini\n(\[databases\]\n.*?)```/s.exec(page)?.[1];
  if (ini === undefined) throw new Error('docs/operating/setup.md has no pgbouncer.ini');
  const lines = ini.split('\n').filter((line) => !((line.split(' = ')[0] as string) in settings));
  const { '*': anyDatabase, ...rest } = settings;
  const added = Object.entries(rest).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} = ${value}`],
  );
  return [lines[0], `* = ${anyDatabase}`, ...lines.slice(1), ...added, ''].join('\n');
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}
