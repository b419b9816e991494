import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { badTag, many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { discardRejections, listRejections, replayRejections } from '../support/rejections.ts';

let server: SharedServer;
let api: Api;
let key: string;
beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  key = await server.createKey(`acme-${randomUUID().slice(0, 8)}`);
  api = apiOf(server.url, key);
});

it('a replay that stores a record settles its earlier rejection, so that nothing older comes back', async () => {
  const [first, second] = [newShop(), newShop()];
  const transaction = newTransaction(first.shop_id, { amount: 1 });
  await api.upload('transactions', [transaction]);
  await api.upload('transactions', [{ ...transaction, shop_id: second.shop_id, amount: 2 }]);
  await api.upload('shops', [second]);
  await replayRejections(api);
  await api.upload('shops', [first]);
  await replayRejections(api);
  const { body } = await api.get(`/v1/data/transactions/${transaction.transaction_id}`);
  expect(body).toMatchObject({ amount: 2, shop_id: second.shop_id });
  expect(await listRejections(api)).toEqual([]);
  const { types } = (await api.get('/v1/data')).body;
  expect(types).toContainEqual(
    expect.objectContaining({ type: 'transactions', records: 1, open_rejections: 0 }),
  );
});

it('a failed record that is nested, or has a number that no double can represent, is listed as it was sent', async () => {
  const nested = `${'['.repeat(29)}${']'.repeat(29)}`;
  const sent = `{"tag_id":"${randomUUID()}","name":7,"deep":${nested},"huge":1e400,"exact":9007199254740993}`;
  const answer = await api.send('/v1/data/tags', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"records":[${sent}]}`,
  });
  expect(answer.status).toBe(400);
  const listed = await fetch(`${server.url}/v1/rejections`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(listed.status).toBe(200);
  expect(await listed.text()).toContain(`"record":${sent}`);
});

it.each([
  ['is not JSON inside', 'what is this'],
  ['has a NUL character inside', '\u0000'],
])(
  'a record that is nested too deeply and %s is listed without its text, and its page is JSON',
  async (_what, inside) => {
    const [deep, bad] = [newTag(), badTag()];
    const nested = `${'['.repeat(40)}${inside}${']'.repeat(40)}`;
    const text = JSON.stringify(deep).replace('}', `,"deep":${nested}}`);
    const answer = await api.send('/v1/data/tags', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"records":[${text},${JSON.stringify(bad)}]}`,
    });
    expect(answer.status).toBe(400);
    expect(await listRejections(api)).toMatchObject([
      { id: deep.tag_id, record: null, errors: [{ code: 'nested_too_deeply' }] },
      { id: bad.tag_id, record: bad },
    ]);
    expect((await replayRejections(api)).status).toBe(400);
  },
);

it('a page of large records ends early, and the next continues there', async () => {
  const large = many(150, () => badTag({ note: 'x'.repeat(60_000) }));
  await api.upload('tags', large);
  const first = (await api.get('/v1/rejections?limit=1000')).body;
  expect(first.rejections.length).toBeLessThan(150);
  expect(first.next_cursor).not.toBeNull();
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await api.get(`/v1/rejections?limit=1000${cursor && `&cursor=${cursor}`}`);
    ids.push(...body.rejections.map(({ id }: { id: string }) => id));
    cursor = body.next_cursor;
  }
  expect(ids).toEqual(large.map(({ tag_id }) => tag_id));
});

it('concurrent uploads, replays and discards of the same records never fail because of each other', async () => {
  const shops = many(4, () => newShop());
  const transactions = shops.flatMap(({ shop_id }) => many(25, () => newTransaction(shop_id)));
  await api.upload('transactions', transactions);
  const statuses: number[] = [];
  const doing = async (work: () => Promise<{ status: number }>) => {
    for (let round = 0; round < 6; round++) statuses.push((await work()).status);
  };
  await Promise.all([
    doing(() => api.upload('transactions', transactions)),
    doing(() => api.upload('transactions', transactions.toReversed())),
    doing(() => replayRejections(api)),
    doing(() => replayRejections(api)),
    doing(() => discardRejections(api, { type: 'transactions', code: 'required' })),
    (async () => {
      for (const shop of shops) await api.upload('shops', [shop]);
    })(),
  ]);
  expect(statuses.filter((status) => status >= 500)).toEqual([]);
  await api.upload('transactions', transactions);
  await replayRejections(api);
  expect(await overviewOf(api)).toMatchObject({ transactions: { records: 100, open_rejections: 0 } });
  expect(await listRejections(api)).toEqual([]);
});

it('filters in a body are refused, because everything would match without them', async () => {
  await api.upload('tags', [badTag(), newTag()]);
  expect((await api.post('/v1/rejections/replay', { type: 'shops' })).status).toBe(400);
  const init = { headers: { 'content-type': 'application/json' }, body: '{"type":"shops"}' };
  expect((await api.send('/v1/rejections', { method: 'DELETE', ...init })).status).toBe(400);
  expect(await listRejections(api)).toHaveLength(1);
});
