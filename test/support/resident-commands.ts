import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface ResidentCommands {
  /** Runs one of the built program's commands and returns its output. Rejects if the command fails. */
  run(...args: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Runs the operator's commands in one long-lived process, because starting a process for each takes 0.3 s of CPU time. */
export function startResidentCommands(databaseUrl: string): ResidentCommands {
  const loop = fileURLToPath(new URL('command-loop.ts', import.meta.url));
  const child = fork(loop, { env: { DATABASE_URL: databaseUrl }, execArgv: [] });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the process of the commands ended');
  });
  ended.catch(() => {});
  let last: Promise<unknown> = Promise.resolve();
  const runAlone = async (args: string[]): Promise<string> => {
    const answered = once(child, 'message');
    child.send(args);
    const [{ stdout, error }] = (await Promise.race([answered, ended])) as [
      { stdout?: string; error?: string },
    ];
    if (stdout === undefined) throw new Error(error);
    return stdout;
  };
  return {
    run(...args) {
      const next = last.then(() => runAlone(args));
      last = next.catch(() => {});
      return next;
    },
    async stop() {
      child.disconnect();
      await ended.catch(() => {});
    },
  };
}
