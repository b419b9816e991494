import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A running `serve` process that is listening. */
export interface SpawnedServer {
  readonly url: string;
  readonly process: ChildProcess;
  /** The server's log lines so far. */
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
      // `close` is emitted after the last output, unlike `exit`.
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
