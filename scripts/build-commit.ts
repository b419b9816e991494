import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Writes the commit of a build, which `--version`, metrics and the API description show after the package's version. */

const root = new URL('..', import.meta.url);

/**
 * Returns the commit, with `-dirty` if tracked files have changes, or an empty string if it is unknown. An image is built
 * from a copy without git, so its build passes the commit.
 */
export function commitOfBuild(): string {
  const { COMMIT } = process.env;
  if (COMMIT) {
    // Semantic versions and image labels allow only these characters.
    if (!/^[0-9A-Za-z-]{1,50}$/.test(COMMIT))
      throw new Error(`COMMIT must be a commit's hash, not "${COMMIT}"`);
    return COMMIT;
  }
  // Otherwise, git would describe a repository that contains an unpacked copy of this one.
  if (!existsSync(new URL('.git', root))) return '';
  const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
  try {
    return execFileSync('git', args, { cwd: fileURLToPath(root), encoding: 'utf8' }).trim();
  } catch {
    console.error('The build has no commit in its version, because git describe failed.');
    return '';
  }
}

if (import.meta.main)
  for (const folder of ['dist', 'client/dist'])
    writeFileSync(new URL(`${folder}/commit`, root), commitOfBuild());
