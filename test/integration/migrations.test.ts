// @module-tag postgres-15

import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createEmptyDatabase } from '../support/database.ts';
import { queryDatabase } from '../support/query-database.ts';

/** What has been run on a database stays as it was; see CONTRIBUTING.md. */

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

/** Runs the copy's own `migrate`. */
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

/** The database as a version before left it, which kept no checksums. */
async function migrateBefore(count: number): Promise<void> {
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  const dir = join(root, 'migrations');
  await runner({
    databaseUrl,
    dir,
    direction: 'up',
    migrationsTable: 'schema_migrations',
    count,
    logger: silent,
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
  const name = '0004_receipts-and-rejections';
  writeFileSync(fileOf(name), `${readFileSync(fileOf(name), 'utf8')}\n${correction};\n`);
  writeFileSync(fileOf('9999_new'), correction);
  const { exitCode, stdout, stderr } = await migrate();
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(
      /ran it: migrations\/0004_receipts-and-rejections\.sql; nothing was done. Restore the file/,
    ),
  ]);
  expect(await noted()).toEqual(before);
  expect(await tableIsThere()).toBe(false);
  // Put right, it goes on.
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

it('a database of an earlier version has its checksums noted by the next migrate', async () => {
  await migrateBefore(5);
  expect(await migrate()).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('applied 0006_maintenance'),
  });
  expect((await noted()).filter(({ sha256 }) => sha256 === null)).toEqual([]);
  writeFileSync(fileOf('0001_organisations-and-keys'), correction);
  expect(await migrate()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('0001_') });
});

it('rejections survive what changed about them: without what was nested too deeply, and with their reasons', async () => {
  await migrateBefore(5);
  const keep = (codes: string) =>
    queryDatabase(
      databaseUrl,
      `insert into rejections (organisation_id, rejection_id, type, request_id, index, record, fields, codes, messages)
       values ($1, uuid_floor(now()), 'shops', $1, 0, '[[[', '{a,b}', $2, '{m,m}')`,
      [randomUUID(), codes],
    );
  await keep('{nested_too_deeply,required}');
  await keep('{required,wrong_type}');
  expect(await migrate()).toMatchObject({ exitCode: 0 });
  expect(
    await queryDatabase(
      databaseUrl,
      'select codes[1] as code, record, rejections from rejections join rejection_kinds using (organisation_id, kind_id) order by 1',
    ),
  ).toEqual([
    { code: 'nested_too_deeply', record: null, rejections: '1' },
    { code: 'required', record: '[[[', rejections: '1' },
  ]);
});

it('a month of interactions that is written to stays, and days follow it', async () => {
  await migrateBefore(9);
  const [{ id } = { id: '' }] = await queryDatabase<{ id: string }>(
    databaseUrl,
    `insert into interactions (organisation_id, interaction_id, interaction_type, item_type, item_id, event_timestamp, event_time)
     select gen_random_uuid(), uuid_floor(now()), 'SHARE', 'TAG', gen_random_uuid(), '1', now()
     returning interaction_id as id`,
  );
  expect(await migrate()).toMatchObject({ exitCode: 0 });
  const partitions = await queryDatabase<{ name: string; isIndexed: boolean; holds: boolean }>(
    databaseUrl,
    `select name, is_indexed as "isIndexed", first_id <= $1 and $1 < end_id as holds from interaction_partitions order by first_id`,
    [id],
  );
  const month = `interactions_${new Date().toISOString().slice(0, 7).replace('-', '_')}`;
  const [first, ...days] = partitions.filter(({ name }) => name >= month);
  expect(first).toEqual({ name: month, isIndexed: false, holds: true });
  expect(days.length).toBeGreaterThan(3);
  for (const day of days) {
    expect(day).toMatchObject({ isIndexed: false, holds: false });
    expect(day.name).toMatch(/^interactions_\d{4}_\d\d_\d\d$/);
    expect(day.name > `${month}_31`).toBe(true);
  }
  const attached = await queryDatabase<{ name: string }>(
    databaseUrl,
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'interactions'::regclass order by 1`,
  );
  expect(attached.map(({ name }) => name)).toEqual(partitions.map(({ name }) => name).toSorted());
  expect(
    await queryDatabase(databaseUrl, 'select from interactions where interaction_id = $1', [id]),
  ).toHaveLength(1);
});

it('an organisation is among the tenants, whether it was there before or is added later', async () => {
  await migrateBefore(12);
  const add = (slug: string) =>
    queryDatabase(
      databaseUrl,
      `insert into organisations (organisation_id, slug, name) values (gen_random_uuid(), $1, $1)`,
      [slug],
    );
  await add('before');
  expect(await migrate()).toMatchObject({ exitCode: 0 });
  await add('after');
  expect(
    await queryDatabase(
      databaseUrl,
      'select slug from organisations join tenants using (organisation_id) order by slug',
    ),
  ).toEqual([{ slug: 'after' }, { slug: 'before' }]);
});
