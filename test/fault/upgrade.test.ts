// @module-tag full

import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBuiltServer } from '../support/built-server.ts';
import { createReleasedDatabase, releases } from '../support/database.ts';
import { playWithFleet } from '../support/fleet.ts';
import { nginxIsInstalled } from '../support/nginx.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests an upgrade to the next version: the current source with more migrations, on a database from the last release. */

const root = fileURLToPath(new URL('../..', import.meta.url));
let next: string;
let databaseUrl: string;
const tables = [
  'tags',
  'interactions',
  'receipts',
  'receipt_batches',
  'rejections',
  'organisations',
  'api_keys',
  'leases',
];
let newest: number;

beforeAll(async () => {
  next = mkdtempSync(join(tmpdir(), 'intake-next-'));
  for (const name of ['src', 'migrations', 'package.json', 'openapi.json'])
    cpSync(join(root, name), join(next, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(next, 'node_modules'));
  newest = readdirSync(join(root, 'migrations')).length;
  // Add a column, unknown to the old code, to every table that the old code reads and writes.
  for (const table of tables)
    addMigration(
      `set local lock_timeout = '60s'; alter table ${table} add column added_later text default 'x';`,
    );
  addMigration('create table made_later (organisation_id uuid primary key);');
  ({ databaseUrl } = await createReleasedDatabase(releases.at(-1) as string));
  await runCommand(['migrate'], { DATABASE_URL: databaseUrl });
});
afterAll(() => rmSync(next, { recursive: true, force: true }));

function addMigration(sql: string): void {
  const number = readdirSync(join(next, 'migrations')).length + 1;
  writeFileSync(join(next, 'migrations', `${String(number).padStart(4, '0')}_later.sql`), sql);
}

const nextMain = () => join(next, 'src/main.ts');
async function migrateNext(url: string): Promise<void> {
  await promisify(execFile)(process.execPath, [nextMain(), 'migrate'], {
    env: { ...process.env, DATABASE_URL: url },
  });
}

const start = () => startBuiltServer({ DATABASE_URL: databaseUrl });
const raise = (level: number) =>
  queryDatabase(databaseUrl, 'update schema_compatibility set oldest_code = $1', [level]);

describe('this version on the schema of the next', () => {
  it('starts and explains what to do; its migrate changes nothing', async () => {
    // Migrate twice at the same time, as happens when several processes restart and each one migrates first.
    await Promise.all([1, 2].map(() => migrateNext(databaseUrl)));
    const { exitCode, stdout } = await runCommand(['migrate'], { DATABASE_URL: databaseUrl });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'The schema was already up to date.\n' });
    const server = await start();
    expect(server.log.join('\n')).toContain('the schema of a newer version, which this one works with');
    await server.stop();
  });

  it('starts after unused parts were removed; neither starts nor is ready if that requires newer code', async () => {
    await raise(newest);
    const server = await start();
    await raise(newest + 1);
    await expect
      .poll(async () => (await fetch(`${server.url}/health/ready`)).json())
      .toMatchObject({ code: 'schema_ahead' });
    await server.stop();
    const { exitCode, stderr } = await runCommand(['serve'], { DATABASE_URL: databaseUrl });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/schema is ahead of this program and no longer works with it; run a newer/);
  });
});

it.skipIf(!nginxIsInstalled)(
  'an upgrade under load, with an old process that restarts in the middle, fails no request',
  async () => {
    const { answered, failed, lost } = await playWithFleet(async (fleet) => {
      const clients = fleet.startClients();
      await migrateNext(fleet.databaseUrl);
      await fleet.restart(0);
      await fleet.restart(1, nextMain());
      await fleet.restart(0, nextMain());
      return clients.stop();
    }, 2);
    console.log(`An upgrade behind nginx: ${answered} requests, ${failed.length} failed`);
    expect({ failed, lost }).toEqual({ failed: [], lost: [] });
    expect(answered).toBeGreaterThan(100);
  },
);
