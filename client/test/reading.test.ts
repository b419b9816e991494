import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop, newTag, newTransaction } from '../../test/support/new-records.ts';
import { Intake, type NewInteraction } from '../src/index.ts';
import { startHttpProxy } from './support/http-proxy.ts';

let server: SharedServer;
let key: string;
let intake: Intake;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('reading');
  intake = new Intake({ url: server.url, key });
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const interactionWith = (item_id: string): NewInteraction => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id,
  event_timestamp: 1_700_000_000,
});

it('reads one record, all of a type, and matching ones', async () => {
  const shops = many(3, () => newShop());
  await intake.upload('shops', shops).finish();
  const sales = shops.flatMap(({ shop_id }) => many(2, () => newTransaction(shop_id)));
  await intake.upload('transactions', sales).finish();
  const shop_id = shops[1]?.shop_id ?? '';
  expect((await intake.data.get('shops', shop_id)).is_public).toBeNull();
  expect(await collect(intake.data.list('transactions'))).toHaveLength(6);
  const matching = await collect(intake.data.list('transactions', { shop_id }));
  expect(matching.map((sale) => sale.shop_id)).toEqual([shop_id, shop_id]);
  const types = await intake.data.overview();
  expect(types.find(({ type }) => type === 'transactions')?.records).toBe(6);
});

it('an export continues where its connection broke', async () => {
  await intake
    .upload(
      'keywords',
      many(5_000, () => ({ keyword_id: randomUUID(), name: 'bread' })),
    )
    .finish();
  const proxy = await startHttpProxy(server.url, (_, count) => (count < 4 ? 'cut within' : 'pass'));
  const broken = new Intake({ url: proxy.url, key });
  const ids = (await collect(broken.data.list('keywords'))).map(({ keyword_id }) => keyword_id);
  expect(ids).toHaveLength(5_000);
  expect(new Set(ids).size).toBe(5_000);
  expect(proxy.seen).toHaveLength(4);
  await proxy.close();
});

it('lists receipts, and reads one', async () => {
  const name = randomUUID();
  await intake
    .upload(
      'tags',
      many(3, () => newTag()),
      { name },
    )
    .finish();
  const [receipt] = await collect(intake.requests.list({ idempotency_key: `${name}-0` }));
  expect(receipt).toMatchObject({ operation: 'upload', complete: true, counts: { created: 3 } });
  expect((await intake.requests.get(receipt?.request_id ?? '')).batches).toHaveLength(1);
  const all = await collect(intake.requests.list({ limit: 2 }));
  expect(all.length).toBeGreaterThan(2);
});

it('summarises, lists, replays and discards rejections', async () => {
  const missing = newShop();
  const records = [
    newTransaction(missing.shop_id),
    newTransaction(missing.shop_id),
    newTransaction(randomUUID()),
  ];
  await intake.upload('transactions', records).finish();
  expect(await intake.rejections.summary()).toMatchObject([{ code: 'reference_not_found', count: 3 }]);
  expect(await collect(intake.rejections.list({ type: 'transactions' }))).toHaveLength(3);
  await intake.upload('shops', [missing]).finish();
  expect(await collect(intake.rejections.replay())).toMatchObject([{ remaining: 1, next_cursor: null }]);
  expect(await intake.rejections.discard({ code: 'reference_not_found' })).toEqual({ discarded: 1 });
  expect(await intake.rejections.summary()).toEqual([]);
});

it('discards until there are no more, and counts all', async () => {
  // The real service works for half a minute before it reports that rejections remain. This server does so immediately.
  const left = [7, 5, 3];
  const slow = createServer((request, response) => {
    expect([request.method, request.url]).toEqual(['DELETE', '/v1/rejections?type=tags']);
    const discarded = left.shift();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ discarded, has_more: left.length > 0 }));
  }).listen(0, '127.0.0.1');
  await once(slow, 'listening');
  const { port } = slow.address() as AddressInfo;
  const hurried = new Intake({ url: `http://127.0.0.1:${port}`, key });
  expect(await hurried.rejections.discard({ type: 'tags' })).toEqual({ discarded: 15 });
  slow.close();
});

it('records an interaction once, however often it is sent', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const proxy = await startHttpProxy(server.url, (_, count) => (count === 1 ? 'cut after' : 'pass'));
  const unlucky = new Intake({ url: proxy.url, key });
  const recorded = await unlucky.record(interactionWith(shop.shop_id));
  expect(proxy.seen).toHaveLength(2);
  expect(await collect(intake.interactions.list({ item_id: shop.shop_id }))).toEqual([recorded]);
  expect(await intake.interactions.get(recorded.interaction_id as string)).toEqual(recorded);
  await expect(intake.record(interactionWith(randomUUID()))).rejects.toMatchObject({
    code: 'invalid_request',
    details: [{ field: 'item_id', code: 'reference_not_found' }],
  });
  await proxy.close();
});
