import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { mainFile, type Place } from './run-intake.ts';

/** The path of `script`, a program from util-linux that runs a command in a new terminal. */
const program = '/usr/bin/script';
export const hasTerminal = existsSync(program);

/** Runs a command in a terminal and returns its output, with both streams combined. `input` is typed immediately. */
export async function runInTerminal(
  { cwd, env, input = '' }: Place & { readonly input?: string },
  ...args: string[]
): Promise<string> {
  const command = [process.execPath, mainFile, ...args].map((each) => `'${each}'`).join(' ');
  const child = spawn(program, ['-qec', command, '/dev/null'], { cwd, env: { ...env, SHELL: '/bin/sh' } });
  child.stdin.end(input);
  return text(child.stdout);
}
