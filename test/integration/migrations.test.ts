// @module-tag postgres-15

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createEmptyDatabase } from '../support/database.ts';
import { queryDatabase } from '../support/query-database.ts';

/** An applied migration must not change (see CONTRIBUTING.md). */

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;
let databaseUrl: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'intake-migrations-'));
  for (const name of ['src', 'migrations', 'package.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  databaseUrl = await createEmptyDatabase();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = (name: string) => join(folder, 'migrations', `${name}.sql`);
const names = () =>
  readdirSync(join(folder, 'migrations'))
    .toSorted()
    .map((file) => file.slice(0, -4));

/** Runs `migrate` from the copy of the project. */
function migrate(): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl };
    const child = execFile(
      process.execPath,
      ['src/main.ts', 'migrate'],
      { cwd: folder, env },
      (_, out, err) => resolve({ exitCode: child.exitCode, stdout: out, stderr: err }),
    );
  });
}

const noted = () =>
  queryDatabase<{ name: string; sha256: string | null }>(
    databaseUrl,
    'select name, sha256 from schema_migrations order by name',
  );

const correction = 'create table corrected ()';
const tableIsThere = async () =>
  (await queryDatabase(databaseUrl, `select from pg_class where relname = 'corrected'`)).length > 0;

it('the checksum of each file is kept when it has run', async () => {
  expect(await migrate()).toMatchObject({ exitCode: 0 });
  expect(await noted()).toEqual(
    names().map((name) => ({
      name,
      sha256: createHash('sha256')
        .update(readFileSync(fileOf(name), 'utf8').replaceAll('\r\n', '\n'))
        .digest('hex'),
    })),
  );
});

it('a file that was changed after it ran is named, and nothing is done', async () => {
  await migrate();
  const before = await noted();
  const name = '0004_receipts';
  writeFileSync(fileOf(name), `${readFileSync(fileOf(name), 'utf8')}\n${correction};\n`);
  writeFileSync(fileOf('9999_new'), correction);
  const { exitCode, stdout, stderr } = await migrate();
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(
      /ran it: migrations\/0004_receipts\.sql; nothing was done. Restore the released file/,
    ),
  ]);
  expect(await noted()).toEqual(before);
  expect(await tableIsThere()).toBe(false);
  // With the original file restored, migrate continues.
  cpSync(join(root, 'migrations', `${name}.sql`), fileOf(name));
  expect(await migrate()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('applied 9999_new') });
  expect(await tableIsThere()).toBe(true);
});

it('the line endings of a checkout do not matter', async () => {
  await migrate();
  for (const name of names())
    writeFileSync(fileOf(name), readFileSync(fileOf(name), 'utf8').replaceAll('\n', '\r\n'));
  expect(await migrate()).toMatchObject({ exitCode: 0, stderr: '' });
});

it('a database from before the first release is refused with a sentence that explains what to do', async () => {
  await queryDatabase(
    databaseUrl,
    `create table schema_migrations (id serial primary key, name text not null, run_on timestamp not null);
     insert into schema_migrations (name, run_on) values ('0001_organisations-and-keys', now()), ('0002_records', now()),
       ('0003_interactions', now()), ('0004_receipts-and-rejections', now())`,
  );
  const { exitCode, stdout, stderr } = await migrate();
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(
    /^intake-server: the tables .* before 0\.1\.0, which cannot be upgraded; nothing was done\. Create a/,
  );
  expect(await queryDatabase(databaseUrl, `select from pg_class where relname = 'organisations'`)).toEqual(
    [],
  );
});
