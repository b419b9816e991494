import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = globSync('{src,test,scripts,faults}/**/*.ts', { cwd: root });
const clientSources = globSync('client/{src,test,scripts}/**/*.ts', { cwd: root }).filter(
  (file) => !file.startsWith('client/src/generated/'),
);
const consoleSources = globSync('console/{src,test,scripts}/**/*.{ts,tsx}', { cwd: root }).filter(
  (file) => !file.startsWith('console/src/generated/'),
);
const importPattern = /(?:from\s+|import\s*\(\s*|import\s+)'([^']+)'/g;

/** Returns a file's imports: paths from the root for our own files, and names for packages. */
function importsOf(file: string): string[] {
  const text = readFileSync(resolve(root, file), 'utf8');
  return [...text.matchAll(importPattern)].map(([, target = '']) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  );
}

/**
 * A file may import from steps to its left, but never from steps to its right. Files and folders in the same step may
 * not import each other. A folder that is not listed here is a capability.
 */
const capabilities = ['src/uploads'];
const steps = [
  ['src/limits.ts'],
  ['src/settings.ts'],
  ['src/errors.ts', 'src/config.ts'],
  ['src/admission'],
  ['src/json', 'src/registry'],
  ['src/metrics'],
  ['src/traces'],
  ['src/postgres'],
  ['src/keys'],
  ['src/records'],
  ['src/suppression'],
  ['src/bookkeeping'],
  ['src/jobs'],
  ['src/receipts', 'src/rejections', 'src/changes'],
  ['src/interactions', 'src/runs'],
  ['src/people', 'src/reports'],
  capabilities,
  ['src/operator', 'src/maintenance'],
  ['src/moving'],
  ['src/http'],
  ['src/cli'],
  ['src/main.ts'],
];

/** A test next to its source file belongs to the same step. */
function isOf(place: string, file: string): boolean {
  return file.replace('.test.ts', '.ts') === place || file.startsWith(`${place}/`);
}

function stepOf(file: string): number {
  return steps.findIndex((places) => places.includes(placeOf(file)));
}

/** Returns the file's entry in the list of steps. An unlisted folder counts as a capability. */
function placeOf(file: string): string {
  const named = steps.flat().find((place) => isOf(place, file));
  const [src, folder, ...rest] = file.split('/');
  if (named !== undefined || rest.length === 0) return named ?? file;
  capabilities.push(`${src}/${folder}`);
  return `${src}/${folder}`;
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

it('the command writes to its terminal in only one file, which escapes foreign text', () => {
  const writes = /\bconsole\.|process\.std(out|err)(?!\.(isTTY|columns|on)\b)/;
  const commandFiles = clientSources.filter((file) => file.startsWith('client/src/command/'));
  const writing = commandFiles.filter((file) => writes.test(readFileSync(resolve(root, file), 'utf8')));
  expect(writing).toEqual(['client/src/command/terminal/terminal.ts']);
});

it("every folder's first file explains the folder", () => {
  const folders = [...new Set(sources.map((file) => /^src\/(\w+)\//.exec(file)?.[1]))].filter((name) => name);
  const silent = folders.filter((folder) => {
    const files = sources.filter((file) => dirname(file) === `src/${folder}` && !file.endsWith('.test.ts'));
    const [first = ''] = files.sort();
    const [line = ''] = readFileSync(resolve(root, first), 'utf8').split('\n');
    return !new RegExp(`^// ${folder}/: .+\\.$`).test(line);
  });
  expect(folders.length).toBeGreaterThan(12);
  expect(silent).toEqual([]);
});

it('the folder of the engine contains no table of a capability', () => {
  const migrations = globSync('migrations/*.sql', { cwd: root }).map((file) =>
    readFileSync(resolve(root, file), 'utf8'),
  );
  // Tables whose names start with schema_, such as schema_migrations, belong to the engine.
  const tables = [...migrations.join('\n').matchAll(/create table (?!schema_)(\w+)/g)].map(
    ([, table]) => table,
  );
  expect(tables.length).toBeGreaterThan(20);
  const naming = new RegExp(`(from|into|update|join) (${tables.join('|')})\\b`);
  const knowing = sources.filter(
    (file) => file.startsWith('src/postgres/') && naming.test(readFileSync(resolve(root, file), 'utf8')),
  );
  expect(knowing).toEqual([]);
});

it('only bookkeeping writes the entries of a stored change, and nothing is stored without it', () => {
  const textOf = (file: string) => readFileSync(resolve(root, file), 'utf8');
  const code = sources.filter((file) => file.startsWith('src/') && !file.endsWith('.test.ts'));
  const owed = '(changes|record_count_changes|rejection_count_changes|receipts|receipt_batches)';
  const writing = new RegExp(`insert into ${owed}\\b|insertsInParts\\(\\s*'${owed}'`);
  expect(code.filter((file) => writing.test(textOf(file))).toSorted()).toEqual(['src/bookkeeping/store.ts']);
  // A dry run uses a separate read-only transaction.
  const capabilities = code.filter((file) => /^src\/(interactions|uploads|rejections)\//.test(file));
  expect(
    capabilities.filter((file) => /\b(inTransaction|inOneTransaction)\(/.test(textOf(file))).toSorted(),
  ).toEqual(['src/uploads/dry-run.ts']);
  expect(capabilities.filter((file) => /\binOneExchange\(/.test(textOf(file)))).toEqual([
    'src/interactions/interaction-inserts.ts',
  ]);
});

it('only one folder uses each external package', () => {
  const users = (packageName: RegExp) =>
    sources
      .filter((file) => file.startsWith('src/') && !file.endsWith('.test.ts'))
      .filter((file) => importsOf(file).some((target) => packageName.test(target)))
      .map((file) => file.split('/')[1])
      .filter((folder, at, all) => all.indexOf(folder) === at);
  expect(
    users(/^(fastify$|@fastify\/|@scalar\/)/).filter((folder) => folder !== 'http' && folder !== 'cli'),
  ).toEqual([]);
  expect(users(/^pg$/).toSorted()).toEqual(['cli', 'postgres']); // The commands create their own databases.
  expect(users(/^node-pg-migrate$/)).toEqual(['postgres']);
  expect(users(/^prom-client$/)).toEqual(['metrics']);
  expect(users(/^@opentelemetry\//)).toEqual(['traces']);
  expect(users(/^(@duckdb|@aws-sdk)\//)).toEqual(['lake']);
});

it('only the cluster folder, the operator and the commands mention Citus', () => {
  const naming = sources.filter(
    (file) => file.startsWith('src/') && /citus/i.test(readFileSync(resolve(root, file), 'utf8')),
  );
  expect(naming.filter((file) => !/^src\/(postgres\/cluster|operator|cli)\//.test(file))).toEqual([]);
});

it('the acceptance and security tests, and their support files, import nothing of the source', () => {
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

it('no module imports itself indirectly', () => {
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
    else if (!done.has(file)) {
      for (const target of importsOf(file).filter((to) => /^(client\/)?src\//.test(to)))
        visit(target, [...path, file]);
      done.add(file);
    }
  };
  const done = new Set<string>();
  for (const file of [...sources, ...clientSources, ...consoleSources]) visit(file, []);
  expect(circles).toEqual([]);
});

it('no source file is longer than 600 lines', () => {
  const long = [...sources, ...clientSources, ...consoleSources].filter(
    (file) => readFileSync(resolve(root, file), 'utf8').split('\n').length > 601,
  );
  expect(long).toEqual([]);
});

it('only config.ts reads the environment', () => {
  const readers = sources.filter(
    (file) => file.startsWith('src/') && /process\.env/.test(readFileSync(resolve(root, file), 'utf8')),
  );
  expect(readers).toEqual(['src/config.ts']);
});

it('no file has a name that means nothing', () => {
  const vague = /(^|[/-])(utils?|helpers?|common|misc|managers?|services?)([./-]|$)/;
  expect([...sources, ...clientSources, ...consoleSources].filter((file) => vague.test(file))).toEqual([]);
});

it('the source files that the documents name exist', () => {
  const named = globSync('{*.md,docs/**/*.md}', { cwd: root })
    .filter((document) => document !== 'CHANGELOG.md' && !document.startsWith('docs/adding-'))
    .flatMap((document) => [...readFileSync(resolve(root, document), 'utf8').matchAll(/`([\w/-]+\.ts)/g)])
    .map(([, file = '']) => file);
  expect(named.length).toBeGreaterThan(60);
  expect(
    named.filter((file) => !existsSync(resolve(root, file)) && !existsSync(resolve(root, 'src', file))),
  ).toEqual([]);
});

it('the tests that the documents name exist', () => {
  const documents = globSync('{*.md,docs/**/*.md}', { cwd: root });
  const named = documents.flatMap((document) => [
    ...readFileSync(resolve(root, document), 'utf8').matchAll(/(?:client\/)?test\/[\w./-]+\.ts/g),
  ]);
  expect(named.length).toBeGreaterThan(20);
  expect(
    named.map(([file]) => file).filter((file) => ![...sources, ...clientSources].includes(file)),
  ).toEqual([]);
});

it('the client library imports no package, nothing of Node, and nothing of the command', () => {
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    if (file.startsWith('client/src/')) for (const target of importsOf(file)) visit(target);
  };
  visit('client/src/index.ts');
  expect(
    [...seen].filter(
      (file) => !/^client\/src\/((generated|interactions|lake|reading|uploading)\/)?[\w-]+\.ts$/.test(file),
    ),
  ).toEqual([]);
  expect(seen).not.toContain('client/src/generated/schemas.ts');
  expect(seen.size).toBeGreaterThan(10);
});

it('the file parsers, and everything that the console uses, import nothing of Node', () => {
  const seen = new Map<string, string>();
  const visit = (file: string, from: string) => {
    if (seen.has(file)) return;
    seen.set(file, from);
    if (existsSync(resolve(root, file))) for (const target of importsOf(file)) visit(target, file);
  };
  const shown = globSync(['client/src/parsing/**/*.ts', 'console/src/**/*.{ts,tsx}'], { cwd: root });
  for (const file of shown) visit(file, '');
  expect([...seen].filter(([target]) => target.startsWith('node:'))).toEqual([]);
  expect(shown.filter((file) => file.startsWith('client/src/parsing/')).length).toBeGreaterThan(15);
});
