import { existsSync, readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The version of the built program: the package's, and the commit. This file imports nothing from src/. */
export const builtVersion: string = [
  JSON.parse(read('package.json')).version,
  ...(existsSync(new URL('../../dist/commit', import.meta.url)) ? [read('dist/commit')] : []),
].join('+');
