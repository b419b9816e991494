import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Outside the checkout: `npm ci` removes node_modules, and an installation takes up to half a minute. */
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'intake-tools');

/** Installs what the file pins into a folder of its own, unless that folder exists; returns its path. */
export async function installOnce(
  name: string,
  pins: string,
  install: (folder: string) => Promise<unknown>,
  /** What else the installation depends on. */
  runtime: string = process.version,
): Promise<string> {
  const version = createHash('sha256').update(readFileSync(pins)).update(runtime).digest('hex').slice(0, 12);
  const installed = join(cache, `${name}-${version}`);
  if (existsSync(installed)) return installed;
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(`${installed}-`);
  await install(folder);
  // Linked last: an interrupted installation is not used, and of two at the same time either will do.
  symlinkSync(folder, `${folder}.link`);
  renameSync(`${folder}.link`, installed);
  return installed;
}

/** Installs Python packages; returns the folder of their programs. */
export async function installPythonTools(name: string, requirements: string): Promise<string> {
  const python = execFileSync('python3', ['--version'], { encoding: 'utf8' });
  const install = async (folder: string) => {
    await run('python3', ['-m', 'venv', folder]).catch((error: unknown) => {
      throw new Error(
        'python3 -m venv failed; install Python 3.11 or newer, and on Debian the package python3-venv',
        { cause: error },
      );
    });
    // As with npm: versions and contents as they were chosen, and nothing that would be built here.
    const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
    await run(join(folder, 'bin/pip'), ['install', '--quiet', ...strictly, '-r', requirements]);
  };
  return join(await installOnce(name, requirements, install, python), 'bin');
}
