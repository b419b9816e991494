import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embeddedBinaries, startLocalPostgres } from '../../src/cli/database/local-postgres.ts';
import { queryDatabase } from './query-database.ts';
import { runCommand } from './run-command.ts';

/** A PostgreSQL of the test's own, migrated, that can be made to hold its connections and answer nothing. */
export interface FreezablePostgres {
  readonly url: string;
  /** Stops the postmaster first, so that no process is started behind our back. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** In a folder of its own below `parent`. */
export async function startFreezablePostgres(
  settings: Record<string, string> = {},
  parent = tmpdir(),
): Promise<FreezablePostgres> {
  const folder = mkdtempSync(join(parent, 'intake-freeze-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), { fsync: 'off', ...settings });
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
    // It has ended meanwhile.
  }
}

/** None if it has ended. */
export function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}
