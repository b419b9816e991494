import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

/** Tests cite the rules on these pages by number, so the numbers must not change. */

const root = fileURLToPath(new URL('..', import.meta.url));
const textOf = (file: string) => readFileSync(resolve(root, file), 'utf8');
const pages = ['docs/api-behaviour.md', 'docs/design/decisions.md'].map(textOf);
const numbers = pages.flatMap((page) =>
  [...page.matchAll(/^- \*\*(\d+[a-z]?)\*\* /gm)].map(([, n = '']) => n),
);

it('every number has one entry on one page, and none disappears', () => {
  expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([]);
  expect(numbers.length).toBeGreaterThanOrEqual(294);
});

it('every number that a test or a page cites has an entry', () => {
  const tests = globSync('{test,client/test}/**/*.test.ts', { cwd: root }).map(textOf);
  const inTests = tests.flatMap((text) => [...text.matchAll(/\(\s*['`](?:decision )?(\d+[a-z]?): /g)]);
  const inPages = [...pages, ...globSync('docs/design/*.md', { cwd: root }).map(textOf)].flatMap((text) => [
    ...text.matchAll(/\((\d+[a-z])\)|superseded by (\d+)|\[(\d+[a-z]?)\]\(/gi),
  ]);
  const cited = [...inTests, ...inPages].map(
    ([, ...found]) => found.find((number) => number !== undefined) ?? '',
  );
  expect(cited.length).toBeGreaterThan(150);
  expect(cited.filter((number) => !numbers.includes(number))).toEqual([]);
});
