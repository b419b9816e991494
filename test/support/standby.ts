import { execFileSync } from 'node:child_process';
import { chownSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LocalPostgres, startLocalPostgres, unprivilegedAccount } from '../../scripts/local-postgres.ts';

/**
 * A primary and a standby, set up with the statements and the pg_basebackup command from "Standby" in
 * docs/operating/scaling.md.
 */

const programs = '/usr/lib/postgresql/15/bin';
export const standbyIsInstalled = existsSync(join(programs, 'pg_basebackup'));
if (!standbyIsInstalled) console.log('No standby is made: PostgreSQL 15 of Debian is not installed');

const page = readFileSync(fileURLToPath(new URL('../../docs/operating/scaling.md', import.meta.url)), 'utf8');
const section = page.split(/^## /m).find((part) => part.startsWith('Standby\n')) ?? '';
const backupFlags = /pg_basebackup .* -D \S+ (.*)$/m.exec(section)?.[1]?.split(' ') ?? [];
/** The statements that the page passes to psql, in order. */
export const standbyStatements = [...section.matchAll(/-c (["'])(.*?)\1/g)].map(([, , text = '']) => text);

export const startPrimary = (folder: string): Promise<LocalPostgres> => startLocalPostgres(folder, programs);

/** Starts a copy that follows the primary. The replication role must exist. */
export async function startStandby(primary: LocalPostgres, folder: string): Promise<LocalPostgres> {
  const account = unprivilegedAccount();
  const data = join(folder, 'data');
  mkdirSync(folder);
  mkdirSync(data, { mode: 0o700 });
  if (account) chownSync(data, account.uid, account.gid);
  const { hostname, port } = new URL(primary.url('postgres'));
  execFileSync(
    join(programs, 'pg_basebackup'),
    ['-h', hostname, '-p', port, '-U', 'replicator', '-D', data, ...backupFlags, '--checkpoint=fast'],
    { ...account, env: { PGPASSWORD: 'change-me-4' }, stdio: 'pipe' },
  );
  copyFileSync(join(primary.home, 'password'), join(folder, 'password'));
  return startLocalPostgres(folder, programs);
}

/** Kills the server abruptly, as if its machine had failed. */
export function killPostgres({ home }: LocalPostgres): void {
  process.kill(Number.parseInt(readFileSync(join(home, 'data', 'postmaster.pid'), 'utf8'), 10), 'SIGKILL');
}
