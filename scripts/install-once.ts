import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The cache is outside the checkout, because `npm ci` deletes node_modules and installing takes up to half a minute. */
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'intake-tools');

/**
 * Installs the packages pinned in the file into their own folder, unless that folder exists, and returns the folder's path.
 */
export async function installOnce(
  name: string,
  pins: string,
  install: (folder: string) => Promise<unknown>,
  /** Identifies anything else that the installation depends on. */
  runtime: string = process.version,
): Promise<string> {
  const version = createHash('sha256').update(readFileSync(pins)).update(runtime).digest('hex').slice(0, 12);
  const installed = join(cache, `${name}-${version}`);
  if (existsSync(installed)) return installed;
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(`${installed}-`);
  await install(folder);
  // Create the link last, so that an interrupted installation is not used. If two installations run at the same time, either
  // one works.
  symlinkSync(folder, `${folder}.link`);
  renameSync(`${folder}.link`, installed);
  return installed;
}

/** Installs Python packages and returns the folder with their programs. */
export async function installPythonTools(name: string, requirements: string): Promise<string> {
  const python = execFileSync('python3', ['--version'], { encoding: 'utf8' });
  const install = async (folder: string) => {
    await run('python3', ['-m', 'venv', folder]).catch((error: unknown) => {
      throw new Error(
        'python3 -m venv failed; install Python 3.11 or newer, and on Debian the package python3-venv',
        { cause: error },
      );
    });
    // As with npm, versions and hashes are pinned, and nothing is built from source.
    const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
    await run(join(folder, 'bin/pip'), ['install', '--quiet', ...strictly, '-r', requirements]);
  };
  return join(await installOnce(name, requirements, install, python), 'bin');
}
