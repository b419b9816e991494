// @module-tag full

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { sections } from '../../site/sections.ts';

/** Builds the site with `npm run docs`, which fails on a dead link. Every page must exist in HTML and in Markdown. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = sections.flatMap((section) => section.pages);
const read = (file: string) => readFileSync(`${root}site/dist/${file}`, 'utf8');

beforeAll(async () => {
  await promisify(execFile)('npm', ['run', '--silent', 'docs'], { cwd: root });
});

it('has every page of the repository as HTML and as Markdown', () => {
  expect(pages.length).toBeGreaterThan(25);
  for (const { path, title } of pages) {
    expect(read(path.replace(/\.md$/, '.html')), path).toContain('<h1');
    expect(read(path)).toContain(title);
  }
});

it('lists every page in llms.txt', () => {
  const list = read('llms.txt');
  const listed = [...list.matchAll(/\]\(\/([^)]*\.md)\)/g)].map(([, path = '']) => path);
  expect(listed.toSorted()).toEqual(pages.map(({ path }) => path).toSorted());
});

it('has the API references, with a description next to each', () => {
  for (const [page, description] of [
    ['public', 'openapi.json'],
    ['admin', 'admin-openapi.json'],
  ]) {
    const html = read(`reference/${page}.html`);
    expect(html).toContain(`"url":"${description}"`);
    expect(html).toContain('src="scalar.js?');
    expect(JSON.parse(read(`reference/${description}`)).openapi).toMatch(/^3\./);
  }
  expect(existsSync(`${root}site/dist/reference/scalar.js`)).toBe(true);
});
