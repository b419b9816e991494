// @module-tag full

import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { listRejections, replayRejections, summariseRejections } from '../support/rejections.ts';

/** The accident that rejections are kept for: an export uploaded in the wrong order. */

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

it('10,000 transactions uploaded before their shops are put right by the shops and one replay', {
  timeout: 240_000,
}, async () => {
  const api = apiOf(server.url, await server.createKey('acme'));
  const transactions = newTransactions(10_000);
  const requestIds: string[] = [];
  for (const at of many(2, (request) => request * 5_000)) {
    const { status, body } = await api.upload('transactions', transactions.slice(at, at + 5_000));
    expect(status).toBe(400);
    requestIds.push(body.request_id);
  }

  const [group, ...others] = await summariseRejections(api);
  expect(others).toEqual([]);
  expect(group).toMatchObject({
    type: 'transactions',
    code: 'reference_not_found',
    field: 'shop_id',
    count: 10_000,
  });
  expect(requestIds).toContain(group.example.request_id);
  expect(group.first_seen < group.last_seen).toBe(true);
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 0, open_rejections: 10_000 } });

  expect((await api.upload('shops', shops)).status).toBe(200);
  const { status, body } = await replayRejections(api);
  expect([status, body.type === null || body.type === 'transactions', body.remaining]).toEqual([
    200,
    true,
    0,
  ]);
  expect(body.batches.map(({ batch }: Batch) => batch)).toEqual(many(10, (at) => at + 1));
  const created = body.batches.reduce((sum: number, { data }: Batch) => sum + data.counts.created, 0);
  expect(created).toBe(10_000);

  expect(await listRejections(api)).toEqual([]);
  expect(await summariseRejections(api)).toEqual([]);
  expect(await overviewOf(api)).toMatchObject({
    shops: { records: 500, open_rejections: 0 },
    transactions: { records: 10_000, open_rejections: 0 },
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

it('of more than 50,000, a replay takes that many, says how many remain, and the next goes on from there', {
  timeout: 240_000,
}, async () => {
  const api = apiOf(server.url, await server.createKey('more'));
  const late = newShop();
  const transactions = [...newTransactions(50_000), ...many(100, () => newTransaction(late.shop_id))];
  for (const at of many(11, (request) => request * 5_000))
    expect((await api.upload('transactions', transactions.slice(at, at + 5_000))).status).toBe(400);
  await api.upload('shops', [late]);
  const replay = async (cursor: string | null = null) => {
    const { status, body } = await replayRejections(api, cursor === null ? {} : { cursor });
    return { status, batches: body.batches.length, remaining: body.remaining, next: body.next_cursor };
  };

  const stuck = await replay();
  expect(stuck).toEqual({ status: 400, batches: 50, remaining: 50_100, next: expect.any(String) });
  expect(await replay(stuck.next)).toEqual({ status: 200, batches: 1, remaining: 50_000, next: null });
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 100, open_rejections: 50_000 } });

  await api.upload('shops', shops);
  const rest = await replay();
  expect(rest).toEqual({ status: 200, batches: 50, remaining: 0, next: expect.any(String) });
  expect(await replay(rest.next)).toEqual({ status: 200, batches: 0, remaining: 0, next: null });
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 50_100, open_rejections: 0 } });
});
