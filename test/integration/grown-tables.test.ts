// @module-tag full
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, withClient } from '../../src/postgres/pool.ts';
import { interactionExample } from '../../src/registry/interaction.ts';
import { liftAgain } from '../../src/suppression/lift-suppressions.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { type Api, apiOf } from '../support/api.ts';
import { createTestApp, erasureKey } from '../support/app.ts';
import { fillTable } from '../support/filled-tables.ts';
import { sweepErasures } from '../support/jobs.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { untilPasses } from '../support/until-passes.ts';

/**
 * Tests an organisation that has grown since PostgreSQL last analysed the tables. Connections keep plans that were made
 * for small tables, and new plans still expect one row. PostgreSQL reports how many rows each statement has read.
 */
const rows = 30_000;
const growing = [
  ...['rejections', 'receipts', 'receipt_batches', 'upload_idempotency_keys', 'interaction_idempotency_keys'],
  ...['interactions', 'transactions', 'shops', 'tags', 'runs', 'run_file_claims'],
];
/** A filtered page scans 10,000 rows. A transaction that discards 10,000 rejections reads them twice. */
const rowsReadMax = 21_000;
/** Looking up one of an organisation's ids for each row that is read, or each id that is searched for. */
const pagesMax = 20_000;

interface Node {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Node[];
}

function rowsRead(node: Node): number {
  const below = (node.Plans ?? []).map(rowsRead).reduce((sum, count) => sum + count, 0);
  if (!/(Seq|Index|Index Only|Bitmap Heap) Scan$/.test(node['Node Type'])) return below;
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return below + node['Actual Loops'] * (node['Actual Rows'] + removed);
}

/** The statements that have run, with the numbers of rows and of pages in memory that PostgreSQL reports for each. */
const ran: {
  readonly rows: number;
  readonly pages: number;
  readonly text: string;
  readonly plan: unknown;
}[] = [];
const connect = pg.Client.prototype.connect as (this: pg.Client, ...rest: []) => never;
vi.spyOn(pg.Client.prototype, 'connect').mockImplementation(function (this: pg.Client, ...rest: []) {
  this.on('notice', ({ message = '' }) => {
    if (!message.startsWith('duration:')) return;
    const { 'Query Text': text, Plan: plan } = JSON.parse(message.slice(message.indexOf('{')));
    ran.push({ rows: rowsRead(plan), pages: plan['Shared Hit Blocks'], text, plan });
  });
  return connect.apply(this, rest);
});

const test = await createTestApp();
const owner = new pg.Client({ connectionString: test.databaseUrl });
/** Plans each statement with its values, as all connections do behind a pooler. */
const planning = createPool(readConfig({ DATABASE_URL: test.databaseUrl }), () => {});
let url: string;
beforeAll(async () => {
  await reportPlans();
  await owner.connect();
  await owner.query('set session_replication_role = replica; set auto_explain.log_min_duration = -1');
  url = await test.app.listen({ port: 0 });
});
afterAll(async () => {
  await planning.end();
  await owner.end();
  await test.close();
});

async function reportPlans(): Promise<void> {
  const database = new URL(test.databaseUrl).pathname.slice(1);
  for (const setting of [
    'session_preload_libraries = auto_explain',
    'auto_explain.log_min_duration = 0',
    'auto_explain.log_analyze = on',
    'auto_explain.log_timing = off',
    'auto_explain.log_buffers = on',
    'auto_explain.log_nested_statements = on',
    'auto_explain.log_format = json',
    'auto_explain.log_level = notice',
  ])
    await queryDatabase(test.databaseUrl, `alter database ${database} set ${setting}`);
}

/** Sends typical client requests, each with a few variations. */
async function makeRequests(api: Api): Promise<void> {
  const shop = newShop();
  const known = newTransaction(shop.shop_id);
  await upload('shops', [shop], 200);
  await upload('shops', [{ ...shop, name: 'renamed' }, ...many(999, () => newShop())], 200);
  await upload('transactions', [known, ...many(999, () => newTransaction(shop.shop_id))], 200);
  await upload('transactions', [known], 200);
  const missing = many(1_000, () => newTransaction(randomUUID()));
  const { body } = await upload('transactions', missing, 400);
  await upload('transactions', missing, 400);
  await upload(
    'transactions',
    missing.slice(500).map((one) => ({ ...one, shop_id: shop.shop_id })),
    200,
  );
  const seen = { ...interactionExample, item_type: 'SHOP', item_id: shop.shop_id, student_id: undefined };
  for (const sent of [seen, seen, { ...seen, item_id: randomUUID() }]) {
    const key = { 'idempotency-key': randomUUID() };
    for (const headers of [{}, key, key]) await api.post('/user-interactions', sent, headers);
  }
  await api.post('/user-interactions/batch', { records: [seen, { ...seen, item_id: randomUUID() }] });
  for (const path of [
    ...['/v1/data', `/v1/data/shops/${shop.shop_id}`, '/v1/data/shops', '/v1/data/transactions?limit=1000'],
    ...[
      `/v1/data/transactions?cursor=${known.transaction_id}&stored_since=2026-01-01T00:00:00Z`,
      '/v1/data/tags?stored_since=2026-01-01T00:00:00Z',
    ],
    ...[
      '/user-interactions',
      '/user-interactions?item_type=SHOP',
      `/user-interactions?item_id=${shop.shop_id}`,
    ],
    ...['/user-interactions?user_id=user&item_type=SHOP', '/v1/requests', '/v1/requests?status=400'],
    ...['/v1/rejections', '/v1/rejections?type=transactions&limit=1000', '/v1/rejections?code=required'],
    ...[`/v1/rejections?request_id=${body.request_id}`, '/v1/rejections/summary', '/v1/changes?limit=1000'],
  ])
    expect([path, (await api.get(path)).status]).toEqual([path, 200]);
  const files = [{ name: 'transactions.csv', bytes: 1, sha256: '9f'.repeat(32), type: 'transactions' }];
  const { body: run } = await api.post(
    '/v1/runs',
    { name: 'nightly', files },
    { 'idempotency-key': randomUUID() },
  );
  const inRun = `run_id=${run.run_id}`;
  expect(
    (await api.post(`/v1/data/transactions?${inRun}&file=0`, { records: missing.slice(0, 9) })).status,
  ).toBe(400);
  for (const path of [
    ...['/v1/runs', `/v1/runs/${run.run_id}`],
    ...[`/v1/requests?${inRun}`, `/v1/rejections?${inRun}`, `/v1/rejections/summary?${inRun}`],
  ])
    expect([path, (await api.get(path)).status]).toEqual([path, 200]);
  expect((await api.post(`/v1/runs/${run.run_id}/end`, { status: 'failed' })).status).toBe(200);
  const ofRequest = `request_id=${body.request_id}`;
  for (const filter of [ofRequest, 'type=tags'])
    expect((await api.send(`/v1/rejections/replay?${filter}`, { method: 'POST' })).status).not.toBe(500);
  for (const filter of [ofRequest, 'code=required', '']) {
    const { status } = await api.send(`/v1/rejections?${filter}`, { method: 'DELETE' });
    expect(status).toBe(200);
  }

  async function upload(type: string, records: readonly unknown[], expected: number) {
    const answer = await api.post(`/v1/data/${type}`, { records }, { 'idempotency-key': randomUUID() });
    expect(answer.status).toBe(expected);
    return answer;
  }
}

/** An organisation whose people were erased before. Autovacuum analyses tables long before they contain a new organisation. */
async function analyseWithAnother(): Promise<void> {
  for (const table of ['erasures', 'erasure_ids', 'suppressions', 'customers'])
    await owner.query(`alter table ${table} set (autovacuum_enabled = off)`);
  const another = [randomUUID()];
  await owner.query(
    `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, state)
     select $1, gen_random_uuid(), 'delete', 'key', 50, 50, 'sweeping' from generate_series(1, 60)`,
    another,
  );
  await owner.query(
    `insert into erasure_ids select organisation_id, erasure_id, gen_random_uuid() from erasures, generate_series(1, 50)
     where organisation_id = $1`,
    another,
  );
  await owner.query(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select organisation_id, sha256(id::bytea), hashtext(id), erasure_id, 1 from erasure_ids where organisation_id = $1`,
    another,
  );
  await fillTable(owner, 'customers', 1, 3_000, another[0]);
  await owner.query('analyze');
}

// Citus does not report the workers' plans.
it.skipIf(inject('citus') !== null)(
  'an erasure reads no more than it has to, even if the statistics do not know the organisation',
  async () => {
    await analyseWithAnother();
    const { organisationId, key } = await test.organisation('new');
    const api = apiOf(url, key);
    const customers = many(2_000, () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' }));
    for (let from = 0; from < customers.length; from += 1_000)
      await api.upload('customers', customers.slice(from, from + 1_000));
    for (let from = 0; from < 1_000; from += 50) {
      const customer_ids = customers.slice(from, from + 50).map(({ customer_id }) => customer_id);
      expect((await api.post('/v1/erasures', { mode: 'delete', customer_ids })).status).toBe(202);
    }
    const suppressions = new Suppressions([erasureKey]);
    await untilPasses(async () => {
      await sweepErasures(planning, suppressions);
      const left = `select from erasures where organisation_id = $1 and state <> 'swept'`;
      expect((await owner.query(left, [organisationId])).rowCount).toBe(0);
    });
    const { rows: erasures } = await owner.query<{ id: string }>(
      `with l as (update suppressions set lifted_before = now() where organisation_id = $1 returning erasure_id)
       select distinct erasure_id as id from l`,
      [organisationId],
    );
    await withClient(planning, (client) =>
      liftAgain(
        client,
        organisationId,
        erasures.map(({ id }) => id),
      ),
    );
    const { rows: lifted } = await owner.query(
      'select count(*)::integer as count from suppressions where organisation_id = $1 and lifted_at is not null',
      [organisationId],
    );
    expect(lifted[0].count).toBe(2_000);
    expect(ran.length).toBeGreaterThan(100);
    expect(ran.filter((one) => one.pages > pagesMax)).toEqual([]);
  },
);

// Citus does not report the workers' plans.
it.skipIf(inject('citus') !== null)('a request reads no more rows than it has to', async () => {
  for (const table of growing) await fillTable(owner, table, 1, 100);
  const { organisationId, key } = await test.organisation('acme');
  const api = apiOf(url, key);
  await makeRequests(api);
  expect(ran.length).toBeGreaterThan(100);
  for (const table of growing) await fillTable(owner, table, 101, rows, organisationId);
  await owner.query(
    `insert into rejection_kinds select organisation_id, kind_id, type, array['name'], array['wrong_type'], array['is wrong'],
       now(), count(*) from rejections where organisation_id = $1 group by 1, 2, 3 on conflict do nothing`,
    [organisationId],
  );
  ran.length = 0;
  await makeRequests(api);
  expect(ran.filter((one) => one.rows > rowsReadMax)).toEqual([]);
});
