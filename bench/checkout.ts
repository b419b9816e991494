import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { UsageError } from './options.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

export interface Checkout {
  readonly commit: string;
  /** The path of the version's built program. */
  readonly main: string;
  /** Builds the version's client and returns the library's URL for `import`. */
  buildClient(): Promise<string>;
  remove(): Promise<void>;
}

/** Builds a version in its own git worktree. It uses this version's packages if the lock file is the same. */
export async function buildCheckout(ref: string): Promise<Checkout> {
  const git = (...args: string[]) => run('git', args, { cwd: root });
  const { stdout } = await git('rev-parse', '--verify', '--short', `${ref}^{commit}`).catch(() => {
    throw new UsageError(`git knows no commit ${ref}; name another with --base`);
  });
  const parent = mkdtempSync(join(tmpdir(), 'intake-base-'));
  const folder = join(parent, 'checkout');
  const remove = async () => {
    await git('worktree', 'remove', '--force', folder);
    rmSync(parent, { recursive: true });
  };
  const build = (project: string) =>
    run(join(folder, 'node_modules/.bin/tsc'), ['-p', project], { cwd: folder });
  const buildClient = async () => {
    await build('client/tsconfig.build.json');
    return pathToFileURL(join(folder, 'client/dist/index.js')).href;
  };
  await git('worktree', 'add', '--detach', folder, stdout.trim());
  try {
    const lockOf = (checkout: string) => readFileSync(join(checkout, 'package-lock.json'), 'utf8');
    if (lockOf(folder) === lockOf(root))
      symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    else await run('npm', ['ci'], { cwd: folder });
    await build('tsconfig.build.json');
  } catch (error) {
    await remove();
    throw error;
  }
  return { commit: stdout.trim(), main: join(folder, 'dist/main.js'), buildClient, remove };
}
