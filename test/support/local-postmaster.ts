import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf } from './freezable-postgres.ts';
import { queryDatabase } from './query-database.ts';

/** A local PostgreSQL server that a test can kill and restart with the same arguments. */
export interface LocalPostmaster {
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Finds the server's postmaster. Returns undefined if the server runs on another machine or cannot be killed. */
export async function localPostmaster(url: string): Promise<LocalPostmaster | undefined> {
  const [row] = await queryDatabase<{ folder: string; pid: string }>(
    url,
    `select current_setting('data_directory') as folder, split_part(pg_read_file('postmaster.pid'), e'\\n', 1) as pid`,
  );
  const folder = row?.folder ?? '';
  if (process.getuid?.() !== 0 || !existsSync(join(folder, 'postmaster.pid'))) return undefined;
  const first = Number(row?.pid);
  const read = (file: string) => readFileSync(`/proc/${first}/${file}`, 'utf8').split('\0').slice(0, -1);
  const [program = '', ...args] = read('cmdline');
  // Use the server's own environment. With the tests' HOME, Citus would look for certificates in a folder that its
  // account cannot read.
  const env = Object.fromEntries(read('environ').map((line) => line.split(/=(.*)/s).slice(0, 2)));
  const { uid, gid } = statSync(folder);
  let pid = first;
  /** Starts the server. Returns false if it exits before it answers. */
  const tryToStart = async () => {
    const server = spawn(program, args, { uid, gid, env, cwd: folder, detached: true, stdio: 'ignore' });
    server.unref();
    pid = server.pid ?? 0;
    while (server.exitCode === null) {
      const answers = await queryDatabase(url, 'select').then(
        () => true,
        () => false,
      );
      if (answers) return true;
      await sleep(50);
    }
    return false;
  };
  return {
    async kill() {
      // Kill the postmaster first, so that it cannot start more processes. This simulates a power loss.
      const children = childrenOf(pid);
      for (const one of [pid, ...children]) tryToKill(one);
      while ([pid, ...children].some((one) => existsSync(`/proc/${one}/exe`))) await sleep(20);
    },
    async start() {
      // A child forked during the kill still holds shared memory, and the server cannot start until that child exits.
      while (!(await tryToStart())) await sleep(100);
    },
  };
}

function tryToKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already exited.
  }
}
