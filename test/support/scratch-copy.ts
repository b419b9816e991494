import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Copies the working tree, or the given paths, to a temporary folder with a link to the installed packages. */
export function scratchCopy(...paths: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'intake-copy-'));
  chmodSync(folder, 0o755);
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...paths],
    {
      cwd: root,
    },
  );
  for (const file of listed.toString().split('\0').filter(Boolean))
    cpSync(join(root, file), join(folder, file));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
