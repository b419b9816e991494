// @module-tag full
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, expect, inject, it, vi } from 'vitest';
import { interactionExample } from '../../src/registry/interaction.ts';
import { type Api, apiOf } from '../support/api.ts';
import { createTestApp } from '../support/app.ts';
import { fillTable } from '../support/filled-tables.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

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

/** The statements that have run, with the number of rows that PostgreSQL reports for each. */
const ran: { readonly rows: number; readonly text: string; readonly plan: unknown }[] = [];
const connect = pg.Client.prototype.connect as (this: pg.Client, ...rest: []) => never;
vi.spyOn(pg.Client.prototype, 'connect').mockImplementation(function (this: pg.Client, ...rest: []) {
  this.on('notice', ({ message = '' }) => {
    if (!message.startsWith('duration:')) return;
    const { 'Query Text': text, Plan: plan } = JSON.parse(message.slice(message.indexOf('{')));
    ran.push({ rows: rowsRead(plan), text, plan });
  });
  return connect.apply(this, rest);
});

const test = await createTestApp();
const owner = new pg.Client({ connectionString: test.databaseUrl });
afterAll(async () => {
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

// Citus does not report the workers' plans.
it.skipIf(inject('citus') !== null)('a request reads no more rows than it has to', async () => {
  await reportPlans();
  await owner.connect();
  await owner.query('set session_replication_role = replica; set auto_explain.log_min_duration = -1');
  for (const table of growing) await fillTable(owner, table, 1, 100);
  const { organisationId, key } = await test.organisation('acme');
  const api = apiOf(await test.app.listen({ port: 0 }), key);
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
