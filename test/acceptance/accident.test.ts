// @module-tag full

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { listRejections, replayRejections, summariseRejections } from '../support/rejections.ts';

/** The accident that rejections are designed for: a client uploads its export in the wrong order. */

let server: BuiltServer;
beforeAll(async () => {
  server = await startBuiltServer();
});
afterAll(() => server.stop());

const shops = many(500, () => newShop());
const newTransactions = (count: number) => many(count, (at) => newTransaction(shops[at % 500]!.shop_id));

interface Batch {
  readonly batch: number;
  readonly status: number;
  readonly data: { readonly counts: { readonly created: number } };
}

it('3,000 transactions uploaded before their shops are fixed by uploading the shops and one replay', async () => {
  const api = apiOf(server.url, await server.createKey('acme'));
  const transactions = newTransactions(3_000);
  const requestIds: string[] = [];
  for (const at of many(2, (request) => request * 1_500)) {
    const { status, body } = await api.upload('transactions', transactions.slice(at, at + 1_500));
    expect(status).toBe(400);
    requestIds.push(body.request_id);
  }

  const [group, ...others] = await summariseRejections(api);
  expect(others).toEqual([]);
  expect(group).toMatchObject({
    type: 'transactions',
    code: 'reference_not_found',
    field: 'shop_id',
    count: 3_000,
  });
  expect(requestIds).toContain(group.example.request_id);
  expect(group.first_seen < group.last_seen).toBe(true);
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 0, open_rejections: 3_000 } });

  expect((await api.upload('shops', shops)).status).toBe(200);
  const { status, body } = await replayRejections(api);
  expect([status, body.type === null || body.type === 'transactions', body.remaining]).toEqual([
    200,
    true,
    0,
  ]);
  expect(body.batches.map(({ batch }: Batch) => batch)).toEqual(many(3, (at) => at + 1));
  const created = body.batches.reduce((sum: number, { data }: Batch) => sum + data.counts.created, 0);
  expect(created).toBe(3_000);

  expect(await listRejections(api)).toEqual([]);
  expect(await summariseRejections(api)).toEqual([]);
  expect(await overviewOf(api)).toMatchObject({
    shops: { records: 500, open_rejections: 0 },
    transactions: { records: 3_000, open_rejections: 0 },
  });
  const stored = await queryDatabase<{ transaction_id: string }>(
    server.databaseUrl,
    'select transaction_id from transactions order by 1',
  );
  expect(stored.map(({ transaction_id }) => transaction_id)).toEqual(
    transactions.map(({ transaction_id }) => transaction_id).toSorted(),
  );
  expect((await api.batch('transactions', transactions.slice(-1_000))).counts.unchanged).toBe(1_000);
});

/** Adds `count` rejected transactions with the same reason as the only existing rejection. */
async function addRejections(slug: string, count: number): Promise<void> {
  await queryDatabase(
    server.databaseUrl,
    `with first as (select r.* from rejections r join organisations using (organisation_id) where slug = $1),
     added as (
       insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record_id, updated, record)
       select organisation_id, (left(rejection_id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, type, kind_id, request_id,
         n, id, updated, replace(record, record_id::text, id::text)
       from first cross join generate_series(1, $2::integer) n cross join lateral (select md5('transaction ' || n)::uuid as id)
       returning organisation_id, kind_id)
     insert into rejection_count_changes select organisation_id, kind_id, count(*) from added group by 1, 2`,
    [slug, count],
  );
}

it('with more than 50,000, a replay processes that many, reports how many remain, and the next continues from there', async () => {
  const api = apiOf(server.url, await server.createKey('more'));
  const late = newShop();
  expect((await api.upload('transactions', [newTransaction(randomUUID())])).status).toBe(400);
  await addRejections('more', 49_999);
  const found = many(100, () => newTransaction(late.shop_id));
  expect((await api.upload('transactions', found)).status).toBe(400);
  await api.upload('shops', [late]);
  const replay = async (cursor: string | null = null) => {
    const { status, body } = await replayRejections(api, cursor === null ? {} : { cursor });
    return { status, batches: body.batches.length, remaining: body.remaining, next: body.next_cursor };
  };

  const stuck = await replay();
  expect(stuck).toEqual({ status: 400, batches: 50, remaining: 50_100, next: expect.any(String) });
  expect(await replay(stuck.next)).toEqual({ status: 200, batches: 1, remaining: 50_000, next: null });
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 100, open_rejections: 50_000 } });
});
