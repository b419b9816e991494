import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unprivilegedAccount } from '../../scripts/local-postgres.ts';
import { freePort } from './free-port.ts';

const programs = '/usr/lib/postgresql/15/bin';

export interface PeerPostgres {
  readonly port: number;
  /** A folder for PATH with a `sudo` that connects to this cluster. */
  readonly path: string;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL server like Debian's: the `postgres` account uses the socket, and others use a password. */
export async function startPeerPostgres(): Promise<PeerPostgres> {
  const account = unprivilegedAccount();
  if (!account) throw new Error('only root can start PostgreSQL as the account postgres');
  const folder = mkdtempSync(join(tmpdir(), 'intake-peer-'));
  chmodSync(folder, 0o755);
  for (const name of ['data', 'socket']) {
    mkdirSync(join(folder, name));
    chownSync(join(folder, name), account.uid, account.gid);
  }
  const data = join(folder, 'data');
  const auth = ['--auth-local=peer', '--auth-host=scram-sha-256'];
  execFileSync(join(programs, 'initdb'), ['-D', data, '-E', 'UTF8', ...auth], { ...account, stdio: 'pipe' });
  const port = await freePort();
  const socket = join(folder, 'socket');
  const flags = [
    '-D',
    data,
    '-p',
    String(port),
    '-k',
    socket,
    '-c',
    'fsync=off',
    '-c',
    'intake.accepted_settings=fsync=off',
  ];
  const server = spawn(join(programs, 'postgres'), flags, { ...account, stdio: 'ignore' });
  const ended = once(server, 'exit');
  const stop = async () => {
    server.kill('SIGINT');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let attempt = 0; !isReady(socket, port); attempt++) {
    if (attempt === 2_400 || server.exitCode !== null) {
      await stop();
      throw new Error('PostgreSQL 15 did not start');
    }
    await sleep(100);
  }
  return { port, path: makeSudo(folder, socket, port), stop };
}

function isReady(socket: string, port: number): boolean {
  try {
    execFileSync(join(programs, 'pg_isready'), ['-h', socket, '-p', String(port)], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Creates a replacement for `sudo -u <account> <command>`. A real sudo would clear PGHOST and PGPORT, and the command
 * would connect to the machine's own PostgreSQL server instead of this one.
 */
function makeSudo(folder: string, socket: string, port: number): string {
  const path = join(folder, 'bin');
  mkdirSync(path);
  const lines = [
    '#!/bin/sh',
    'account=$2; shift 2',
    `exec setpriv --reuid "$account" --regid "$account" --init-groups env PGHOST=${socket} PGPORT=${port} "$@"`,
  ];
  writeFileSync(join(path, 'sudo'), `${lines.join('\n')}\n`, { mode: 0o755 });
  return path;
}
