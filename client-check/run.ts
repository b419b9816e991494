import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program to its end. Where it fails, the error says what it printed. */
export async function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<void> {
  try {
    await promisify(execFile)(program, args, options);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args[0]} failed:\n${stdout}${stderr || error}`);
  }
}
