import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** The last commit before people stopped being inferred from interactions. */
const commit = '9b2be7c';

/** Whether the repository's history contains the previous version. A shallow clone does not. */
export function hasPreviousVersion(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Copies the source of the previous version to a new folder. Node runs it without a build, with this version's packages. */
export async function previousVersion(): Promise<{ readonly main: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-previous-'));
  const archive = join(folder, 'source.tar');
  const paths = ['src', 'migrations', 'package.json', 'openapi.json', 'admin-openapi.json'];
  await run('git', ['archive', '--output', archive, commit, ...paths], { cwd: root });
  await run('tar', ['-xf', archive, '-C', folder]);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return {
    main: join(folder, 'src/main.ts'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
