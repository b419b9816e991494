// @module-tag full

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LocalPostgres } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { Instructions } from '../support/changed-copy.ts';
import { servingLogin } from '../support/database.ts';
import { newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import { standbyIsInstalled, standbyStatements, startPrimary, startStandby } from '../support/standby.ts';

/** docs/analytics.md recommends that analysts read from a standby, because from there they cannot harm the primary. */

const page = new Instructions('docs/analytics.md');
const running = new AsyncDisposableStack();
afterAll(() => running.disposeAsync());

async function started(starting: Promise<LocalPostgres>): Promise<LocalPostgres> {
  const cluster = await starting;
  running.defer(() => cluster.stop());
  return cluster;
}

describe.skipIf(!standbyIsInstalled)('an analyst', () => {
  let primary: LocalPostgres;
  let standby: LocalPostgres;
  let api: Api;
  /** A statement that takes the same advisory lock as a tag upload. Any login can see an upload's lock in pg_locks. */
  let takeLock: string;

  async function connectTo(cluster: LocalPostgres): Promise<pg.Client> {
    const url = new URL(cluster.url('intake'));
    [url.username, url.password] = ['anna', 'change-me'];
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    return client;
  }

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'intake-standby-'));
    chmodSync(folder, 0o755);
    running.defer(() => rmSync(folder, { recursive: true, force: true }));
    primary = await started(startPrimary(join(folder, 'first')));
    await queryDatabase(primary.url('postgres'), standbyStatements[0] ?? '');
    await queryDatabase(primary.url('postgres'), 'create database intake');
    standby = await started(startStandby(primary, join(folder, 'second')));
    const url = primary.url('intake');
    expect(await runCommand(['migrate'], { DATABASE_URL: url })).toMatchObject({ exitCode: 0 });
    const { password } = new URL(url);
    await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
    await queryDatabase(url, page.snippet('create-login'));
    const server = await startBuiltServer({ DATABASE_URL: url });
    running.defer(() => server.stop());
    api = apiOf(server.url, await server.createKey('acme'));
    expect((await api.upload('tags', [newTag()])).status).toBe(200);
    const [row] = await queryDatabase<{ id: string }>(url, 'select organisation_id as id from organisations');
    takeLock = `select pg_advisory_lock(hashtextextended('batches ${row?.id} tags', 0))`;
  });

  it('on the primary can hold uploads up', async () => {
    const anna = await connectTo(primary);
    await anna.query(takeLock);
    const upload = api.upload('tags', [newTag()]);
    const waiting = `select from pg_locks where locktype = 'advisory' and not granted`;
    await expect.poll(async () => (await queryDatabase(primary.url('intake'), waiting)).length).toBe(1);
    await anna.end();
    expect((await upload).status).toBe(200);
  });

  it('on a standby reads what was stored, and holds nothing up', async () => {
    const tags = async () => {
      const anna = await connectTo(standby);
      const { rowCount } = await anna.query('select from tags').finally(() => anna.end());
      return rowCount;
    };
    await expect.poll(() => tags().catch(() => 0)).toBeGreaterThan(0);
    const anna = await connectTo(standby);
    await anna.query(takeLock);
    await anna.query('begin; lock table public.tags in access share mode');
    expect((await api.upload('tags', [newTag()])).status).toBe(200);
    await anna.end();
  });

  it.each([
    ['a temporary table', 'create temporary table mine (a integer)'],
    ['a large object', `select lo_from_bytea(0, 'x')`],
    ['another large object', 'select lo_create(0)'],
    ['a message in the log', `select pg_logical_emit_message(true, 'x', 'x')`],
    ['a message outside a transaction', `select pg_logical_emit_message(false, 'x', 'x')`],
    ['a transaction id', 'select pg_current_xact_id()'],
    ['a notification', `notify x, 'x'`],
  ])('on a standby cannot make %s', async (_what, statement) => {
    const anna = await connectTo(standby);
    // Writes are refused even if the login's read-only setting is off.
    await anna.query('set default_transaction_read_only = off');
    await expect(anna.query(statement)).rejects.toMatchObject({ severity: 'ERROR' });
    await anna.end();
  });

  it('is kept off the primary by the lines of the page', async () => {
    const file = join(primary.home, 'data', 'pg_hba.conf');
    writeFileSync(file, page.snippet('keep-off-primary') + readFileSync(file, 'utf8'));
    await queryDatabase(primary.url('postgres'), 'select pg_reload_conf()');
    const tryPrimary = async () => {
      const anna = await connectTo(primary);
      await anna.end();
    };
    await expect.poll(() => tryPrimary().catch(({ code }) => code)).toBe('28000');
    await (await connectTo(standby)).end();
    expect((await api.upload('tags', [newTag()])).status).toBe(200);
  });
});
