import { execFileSync } from 'node:child_process';
import { chownSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LocalPostgres, startLocalPostgres, unprivilegedAccount } from '../../src/cli/local-postgres.ts';

/** Debian's, since those that come with the tests have no pg_basebackup. */
export const programs = '/usr/lib/postgresql/15/bin';
export const isInstalled = existsSync(join(programs, 'pg_basebackup'));

/** A copy that follows the primary, made by pg_basebackup with these flags as the login `replicator`. */
export async function startStandby(
  primary: LocalPostgres,
  folder: string,
  password: string,
  flags: readonly string[],
): Promise<LocalPostgres> {
  const account = unprivilegedAccount();
  const data = join(folder, 'data');
  mkdirSync(folder);
  mkdirSync(data, { mode: 0o700 });
  if (account) chownSync(data, account.uid, account.gid);
  const { hostname, port } = new URL(primary.url('postgres'));
  execFileSync(
    join(programs, 'pg_basebackup'),
    ['-h', hostname, '-p', port, '-U', 'replicator', '-D', data, ...flags, '--checkpoint=fast'],
    { ...account, env: { PGPASSWORD: password }, stdio: 'pipe' },
  );
  copyFileSync(join(primary.home, 'password'), join(folder, 'password'));
  return startLocalPostgres(folder, programs);
}

/** As if its machine were gone. */
export function killPostgres({ home }: LocalPostgres): void {
  process.kill(Number.parseInt(readFileSync(join(home, 'data', 'postmaster.pid'), 'utf8'), 10), 'SIGKILL');
}
