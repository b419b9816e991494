import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A psql session that stays connected, so that measurements include neither its start nor the handshake. */
export interface Psql {
  /** Runs one command and waits for it to end. SQL must end with a semicolon, but a backslash command must not. */
  run(command: string): Promise<void>;
  close(): Promise<void>;
}

const done = 'command-is-done';

export async function openPsql(program: string, url: string): Promise<Psql> {
  const child = spawn(program, ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let waiting: PromiseWithResolvers<void> | undefined;
  let complaints = '';
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      waiting?.reject(new Error(`psql ended: ${complaints.trim()}`));
      resolve();
    });
  });
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  child.stdin.on('error', () => {}); // The process has ended, which the listener above reports.
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === done) waiting?.resolve();
  });
  const psql: Psql = {
    async run(command) {
      if (child.exitCode !== null) throw new Error(`psql has ended: ${complaints.trim()}`);
      waiting = Promise.withResolvers<void>();
      child.stdin.write(`${command}\n\\echo ${done}\n`);
      await waiting.promise;
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
  await psql.run('select 1 \\g /dev/null');
  return psql;
}
