import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A psql that stays connected, so that neither its start nor the handshake is part of what is measured. */
export interface Psql {
  /** Runs one command to its end; SQL needs its semicolon, a backslash command must not have one. */
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
  child.stdin.on('error', () => {}); // It ended, and the listener above says so.
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
