import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A running `serve`, once it listens. */
export interface SpawnedServer {
  readonly url: string;
  readonly process: ChildProcess;
  /** What it has written to its log so far, a line each. */
  readonly log: readonly string[];
  stop(): Promise<void>;
}

export async function spawnServer(main: string, env: NodeJS.ProcessEnv): Promise<SpawnedServer> {
  const server = spawn(process.execPath, [main, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const log: string[] = [];
  const url = await listeningAddress(server, log);
  return {
    url,
    process: server,
    log,
    async stop() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      // With what it said last.
      const closed = once(server, 'close');
      server.kill('SIGTERM');
      await closed;
    },
  };
}

function listeningAddress(server: ChildProcess, log: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${log.join('\n')}`)));
    createInterface({ input: server.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      log.push(line);
      const address = /Server listening at (https?:\/\/[^"\s]+)/.exec(line)?.[1];
      if (address) resolve(address);
    });
  });
}
