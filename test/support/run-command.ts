import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface CommandResult {
  /** The exit code, or null if the command ran for too long and had to be stopped. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of the built program's commands until it exits, with only the given environment. */
export function runCommand(args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { env, timeout: 240_000, killSignal: 'SIGKILL' as const };
    const child = execFile(process.execPath, [main, ...args], options, (_error, stdout, stderr) =>
      resolve({ exitCode: child.exitCode, stdout, stderr }),
    );
  });
}
