import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const mainFile = fileURLToPath(new URL('../../dist/command/main.js', import.meta.url));

export interface Place {
  readonly cwd: string;
  readonly env: Record<string, string>;
}

export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the command with only the given environment variables. */
export function startIntake(
  { cwd, env }: Place,
  ...args: string[]
): ChildProcess & { ended: Promise<Ended> } {
  const child = spawn(process.execPath, [mainFile, ...args], { cwd, env });
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]).then(
    ([[exitCode], stdout, stderr]) => ({ exitCode, stdout, stderr }),
  );
  return Object.assign(child, { ended });
}

export function runIntake(place: Place, ...args: string[]): Promise<Ended> {
  return feedIntake(place, '', ...args);
}

export function feedIntake(place: Place, input: string, ...args: string[]): Promise<Ended> {
  const child = startIntake(place, ...args);
  child.stdin?.end(input);
  return child.ended;
}
