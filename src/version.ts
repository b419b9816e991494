import { readFileSync } from 'node:fs';

/** The version of this program. The same path from `src/` and from `dist/`. */
export function version(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}
