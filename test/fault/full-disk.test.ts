// @module-tag full

import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { embeddedBinaries, type LocalPostgres, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingLogin } from '../support/database.ts';
import { disposable } from '../support/disposable.ts';
import { expectError } from '../support/expect-error.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';
import { runCommand } from '../support/run-command.ts';

/** When PostgreSQL's disk is full, every message states the cause and the fix. */

const folder = mkdtempSync(join(tmpdir(), 'intake-full-disk-'));
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=320m,mode=755', 'tmpfs', folder]).status === 0;
if (!mounted) console.log('No disk is filled: nothing can be mounted here');
chmodSync(folder, 0o755);
const ballast = join(folder, 'ballast');
const remedy = "PostgreSQL's disk is full; free space on it or grow its volume";

let postgres: LocalPostgres;
let server: BuiltServer;
let apis: Api[];
beforeAll(async () => {
  if (!mounted) return;
  const settings = { ...disposable, min_wal_size: '32MB', max_wal_size: '64MB' };
  postgres = await startLocalPostgres(join(folder, 'postgres'), embeddedBinaries(), settings);
  const url = postgres.url('postgres');
  expect((await runCommand(['migrate'], { DATABASE_URL: url })).exitCode).toBe(0);
  const { password } = new URL(url);
  await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
  server = await startBuiltServer({ DATABASE_URL: url });
  apis = await Promise.all(
    ['acme', 'other'].map(async (slug) => apiOf(server.url, await server.createKey(slug))),
  );
});
afterAll(async () => {
  await server?.stop();
  await postgres?.stop();
  if (mounted) spawnSync('umount', ['--lazy', folder]);
  rmSync(folder, { recursive: true, force: true });
});

/** Fills the disk to the last byte, while PostgreSQL is still writing to it. */
function fill(): void {
  for (const bytes of [1024 * 1024, 4096]) {
    try {
      for (;;) appendFileSync(ballast, Buffer.alloc(bytes));
    } catch {
      // A file of this size no longer fits.
    }
  }
}

const upload = (api: Api | undefined) =>
  api!.upload(
    'shops',
    many(1_000, () => newShop()),
  );
const ready = () => apiOf(server.url).get('/health/ready');

/** Returns the readiness. If the machine stalls for two seconds, the probe is late, which says nothing about errors. */
async function readyInTime() {
  for (;;) {
    const answer = await ready();
    if (!/does not answer/.test(answer.body.message)) return answer;
  }
}

/** Uploads until an upload fails for lack of space. Until then, some batches may still fit into existing pages. */
async function untilFull(api: Api | undefined) {
  for (;;) {
    const answer = await upload(api);
    if (answer.status !== 200) return answer;
  }
}

it.skipIf(!mounted)(
  'an error of the server that affects a single organisation leaves the process ready',
  async () => {
    const [acme] = await queryDatabase<{ id: string }>(
      server.databaseUrl,
      `select organisation_id as id from organisations where slug = 'acme'`,
    );
    await queryDatabase(
      server.databaseUrl,
      `create function fail() returns trigger language plpgsql as $$
     begin raise exception using errcode = '53100', message = 'could not extend file'; end $$;
     create trigger fails before insert on shops for each row when (new.organisation_id = '${acme?.id}') execute function fail()`,
    );
    for (let round = 0; round < 3; round++) {
      expectError(await upload(apis[0]), 503);
      await sleep(1_100);
      expect((await readyInTime()).status).toBe(200);
    }
    await queryDatabase(server.databaseUrl, 'drop trigger fails on shops');
  },
);

it.skipIf(!mounted)(
  'uploads are 503 and name the full disk, and so does readiness, until there is space',
  async () => {
    for (const api of apis) expect((await upload(api)).status).toBe(200);
    const linesBefore = server.log.length;
    fill();
    const answer = await untilFull(apis[0]);
    expectError(answer, 503);
    expect(answer.body).toMatchObject({
      code: 'database_unavailable',
      message: expect.stringMatching(/^The disk of the database is full, .* Nothing was stored\.$/),
    });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    const causes = () =>
      server.log
        .slice(linesBefore)
        .map((line) => JSON.parse(line).cause)
        .filter((cause) => cause !== undefined);
    await expect.poll(causes).toEqual([`SQLSTATE 53100: ${remedy}`]);
    // Without requests, the process can only find out that the disk is still full by trying to write.
    for (const endMs = performance.now() + 11_000; performance.now() < endMs; await sleep(1_000))
      await expect
        .poll(async () => (await ready()).body.message)
        .toContain(`${remedy} (SQLSTATE 53100). See docs/operating/runbook.md`);
    rmSync(ballast);
    await expectReady(server.url);
    for (const api of apis) expect((await upload(api)).status).toBe(200);
  },
);

it.skipIf(!mounted)(
  'a server that ends every new session for lack of space is 503, never 500, and the process is not ready',
  async () => {
    // Log in now, because logging in later would fail.
    const session = new pg.Client({ connectionString: server.databaseUrl });
    await session.connect();
    onTestFinished(() => session.end());
    // Delete these files, as a schema change does, so that the next session has to write them again.
    const data = join(postgres.home, 'data');
    const folders = ['global', ...readdirSync(join(data, 'base')).map((name) => join('base', name))];
    for (const name of folders) rmSync(join(data, name, 'pg_internal.init'), { force: true });
    fill();
    await session.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${servingLogin}'`,
    );
    await expect
      .poll(async () => (await ready()).body.message)
      .toMatch(/^PostgreSQL's disk is full; free space on it or grow its volume \(SQLSTATE (XX000|53100)\)/);
    for (const api of apis) {
      const answers = [await upload(api), await api.get('/v1/changes'), await api.get('/v1/data')];
      for (const answer of answers) {
        expectError(answer, 503);
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      }
    }
    rmSync(ballast);
    await expectReady(server.url);
    for (const api of apis) expect((await upload(api)).status).toBe(200);
  },
);
