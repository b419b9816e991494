import { globSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = globSync('{src,test,scripts}/**/*.ts', { cwd: root });
const importPattern = /(?:from\s+|import\s*\(\s*|import\s+)'([^']+)'/g;

/** Every import of a file: paths from the root for our own files, names for packages. */
function importsOf(file: string): string[] {
  const text = readFileSync(resolve(root, file), 'utf8');
  return [...text.matchAll(importPattern)].map(([, target = '']) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  );
}

/** Left may be imported by right, never the other way round. Files and folders of one step may not import each other. */
const steps = [
  ['src/limits.ts'],
  ['src/errors.ts', 'src/config.ts'],
  ['src/registry'],
  ['src/store'],
  ['src/ingest', 'src/interactions', 'src/keys'],
  ['src/operator'],
  ['src/http'],
  ['src/cli'],
  ['src/main.ts'],
];

function stepOf(file: string): number {
  return steps.findIndex((places) => places.some((place) => file === place || file.startsWith(`${place}/`)));
}

function placeOf(file: string): string | undefined {
  return steps.flat().find((place) => file === place || file.startsWith(`${place}/`));
}

it('every source file belongs to a step of the dependency direction', () => {
  expect(sources.filter((file) => file.startsWith('src/') && stepOf(file) < 0)).toEqual([]);
});

it('no import goes against the dependency direction', () => {
  const wrong = sources
    .filter((file) => file.startsWith('src/'))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith('src/') && placeOf(target) !== placeOf(file))
        .filter((target) => stepOf(target) >= stepOf(file))
        .map((target) => `${file} -> ${target}`),
    );
  expect(wrong).toEqual([]);
});

it('only one folder knows each outside thing', () => {
  const users = (packageName: RegExp) =>
    sources
      .filter((file) => file.startsWith('src/') && !file.endsWith('.test.ts'))
      .filter((file) => importsOf(file).some((target) => packageName.test(target)))
      .map((file) => file.split('/')[1])
      .filter((folder, at, all) => all.indexOf(folder) === at);
  expect(
    users(/^(fastify$|@fastify\/|@scalar\/)/).filter((folder) => folder !== 'http' && folder !== 'cli'),
  ).toEqual([]);
  expect(users(/^typebox/)).toEqual(['registry']);
  expect(users(/^pg$/).toSorted()).toEqual(['cli', 'store']); // The commands make databases of their own.
  expect(users(/^node-pg-migrate$/)).toEqual(['store']);
});

it('the acceptance and security tests, and what they use, import nothing of the source', () => {
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const target of importsOf(file)) if (target.endsWith('.ts')) visit(target);
  };
  for (const file of sources.filter((source) => /^test\/(acceptance|security)\//.test(source))) visit(file);
  expect([...seen].filter((file) => file.startsWith('src/'))).toEqual([]);
  expect(seen.size).toBeGreaterThan(3);
});

it('no module imports itself by a detour', () => {
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
    else if (!done.has(file)) {
      for (const target of importsOf(file).filter((to) => to.startsWith('src/')))
        visit(target, [...path, file]);
      done.add(file);
    }
  };
  const done = new Set<string>();
  for (const file of sources) visit(file, []);
  expect(circles).toEqual([]);
});

it('no source file is longer than 400 lines', () => {
  const long = sources.filter((file) => readFileSync(resolve(root, file), 'utf8').split('\n').length > 401);
  expect(long).toEqual([]);
});

it('only config.ts reads the environment', () => {
  const readers = sources.filter(
    (file) => file.startsWith('src/') && /process\.env/.test(readFileSync(resolve(root, file), 'utf8')),
  );
  expect(readers).toEqual(['src/config.ts']);
});

it('no file carries a name that says nothing', () => {
  const vague = /(^|[/-])(utils?|helpers?|common|misc|managers?|services?)([./-]|$)/;
  expect(sources.filter((file) => vague.test(file))).toEqual([]);
});

it('the tests that the documents name exist', () => {
  const documents = globSync('{*.md,docs/*.md}', { cwd: root });
  const named = documents.flatMap((document) => [
    ...readFileSync(resolve(root, document), 'utf8').matchAll(/test\/[\w./-]+\.ts/g),
  ]);
  expect(named.length).toBeGreaterThan(20);
  expect(named.map(([file]) => file).filter((file) => !sources.includes(file))).toEqual([]);
});
