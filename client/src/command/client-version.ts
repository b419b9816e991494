import { existsSync, readFileSync } from 'node:fs';

/** Returns the version of this command, with the commit from which it was built. */
export function clientVersion(): string {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const commit = existsSync(new URL('../commit', import.meta.url)) ? read('../commit') : '';
  return JSON.parse(read('../../package.json')).version + (commit && `+${commit}`);
}
