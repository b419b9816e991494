import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program and waits for it to end. If the program fails, the error contains its output. */
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
