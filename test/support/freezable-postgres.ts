import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embeddedBinaries, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { disposable } from './disposable.ts';
import { queryDatabase } from './query-database.ts';
import { runCommand } from './run-command.ts';

/** A separate, migrated PostgreSQL server. While it is frozen, it keeps its connections open but does not answer. */
export interface FreezablePostgres {
  readonly url: string;
  /** Freezes all processes, starting with the postmaster, so that it cannot start more processes. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL server with its data directory under `parent`. */
export async function startFreezablePostgres(
  settings: Record<string, string> = {},
  parent = tmpdir(),
): Promise<FreezablePostgres> {
  const folder = mkdtempSync(join(parent, 'intake-freeze-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), { ...disposable, ...settings });
  const url = postgres.url('postgres');
  await runCommand(['migrate'], { DATABASE_URL: url });
  const { password } = new URL(url);
  await queryDatabase(url, `create role intake_test login password '${password}' in role intake_serve`);
  const pidFile = join(postgres.home, 'data', 'postmaster.pid');
  const postmaster = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
  const signalAll = (signal: 'SIGSTOP' | 'SIGCONT') => {
    trySignal(postmaster, signal);
    for (const pid of childrenOf(postmaster)) trySignal(pid, signal);
  };
  const thaw = () => signalAll('SIGCONT');
  return {
    url,
    freeze: () => signalAll('SIGSTOP'),
    thaw,
    async stop() {
      thaw();
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already exited.
  }
}

/** Returns the process's children. The list is empty if the process has exited. */
export function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}
