import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { mainFile, type Place } from './run-intake.ts';

/** Of util-linux: runs a command on a terminal of its own. */
const program = '/usr/bin/script';
export const hasTerminal = existsSync(program);

/** What a terminal receives from the command: both streams, as one text. `input` is typed at once. */
export async function runInTerminal(
  { cwd, env, input = '' }: Place & { readonly input?: string },
  ...args: string[]
): Promise<string> {
  const command = [process.execPath, mainFile, ...args].map((each) => `'${each}'`).join(' ');
  const child = spawn(program, ['-qec', command, '/dev/null'], { cwd, env: { ...env, SHELL: '/bin/sh' } });
  child.stdin.end(input);
  return text(child.stdout);
}
