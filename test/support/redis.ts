import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const program = 'redis-server';
export const redisIsInstalled = spawnSync(program, ['--version']).status === 0;

/** A separate Redis on localhost, without persistence. */
export interface Redis {
  readonly url: string;
  /** Kills Redis abruptly, as in a power loss. */
  kill(): Promise<void>;
  /** Makes Redis keep its connections open without answering. */
  freeze(): void;
  thaw(): void;
  /** Starts Redis again on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<Redis> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-redis-'));
  const port = await freePort();
  let server = await start(port, folder);
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    async restart() {
      server = await start(port, folder);
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function start(port: number, folder: string): Promise<ChildProcess> {
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const server = spawn(program, ['--port', String(port), ...settings], { stdio: 'ignore' });
  for (let attempt = 0; attempt < 4_800; attempt++) {
    if (await answers(port)) return server;
    if (server.exitCode !== null) break;
    await sleep(50);
  }
  server.kill('SIGKILL');
  throw new Error(`redis-server did not start on port ${port}`);
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const conclude = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.on('data', (said) => conclude(said.toString().startsWith('+PONG')));
    socket.on('error', () => conclude(false));
  });
}
