import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Makes a folder of what the file pins, unless it is there; returns its path. */
export async function installOnce(
  name: string,
  pins: string,
  install: (folder: string) => Promise<unknown>,
): Promise<string> {
  const version = createHash('sha256').update(readFileSync(pins)).digest('hex').slice(0, 12);
  const folder = here(`../node_modules/.cache/${name}-${version}`);
  // Written last: an installation that was broken off has no mark.
  const mark = join(folder, 'installed');
  if (existsSync(mark)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await install(folder);
  writeFileSync(mark, '');
  return folder;
}
