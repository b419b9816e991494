import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import {
  badTag,
  danglingTransaction,
  many,
  newShop,
  newTag,
  newTransaction,
} from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { countStored, queryDatabase } from '../support/query-database.ts';
import {
  discardRejections,
  listRejections,
  type Rejection,
  replayRejections,
  summariseRejections,
} from '../support/rejections.ts';

/** Tests how a request closes a rejection: by a successful replay, or by discarding it. */

let server: SharedServer;
let api: Api;
let organisation: string;
beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  organisation = `acme-${randomUUID().slice(0, 8)}`;
  api = apiOf(server.url, await server.createKey(organisation));
});

const countsOf = ({ body }: Answer) =>
  body.batches.map(({ data }: { data: { counts: Record<string, number> } }) =>
    Object.fromEntries(Object.entries(data.counts).filter(([, count]) => count > 0)),
  );
const openOf = async () =>
  Object.fromEntries(
    Object.values(await overviewOf(api)).map(({ type, open_rejections }) => [type, open_rejections]),
  );

describe('a replay', () => {
  it('stores records that are valid now, and removes their rejections', async () => {
    const shop = newShop();
    const transactions = many(3, () => newTransaction(shop.shop_id, { updated: '2026-01-01T00:00:00.5Z' }));
    await api.upload('transactions', transactions);
    await api.upload('shops', [shop]);
    const replayed = await replayRejections(api);
    expect([replayed.status, countsOf(replayed)]).toEqual([200, [{ received: 3, created: 3 }]]);
    expect(await listRejections(api)).toEqual([]);
    expect(await summariseRejections(api)).toEqual([]);
    expect(await openOf()).toMatchObject({ transactions: 0 });
    expect((await api.batch('transactions', transactions)).counts).toMatchObject({ unchanged: 3 });
  });

  it('is answered in the shape of an upload, with the number that remains', async () => {
    const shop = newShop();
    await api.upload('transactions', [newTransaction(shop.shop_id)]);
    await api.upload('shops', [shop]);
    const { status, headers, body } = await replayRejections(api, { type: 'transactions' });
    expect(status).toBe(200);
    expect(Object.keys(body).toSorted()).toEqual([
      'batches',
      'next_cursor',
      'remaining',
      'request_id',
      'type',
    ]);
    expect(body).toMatchObject({
      request_id: expect.stringMatching(uuidV7),
      type: 'transactions',
      remaining: 0,
      next_cursor: null,
      batches: [
        {
          batch: 1,
          status: 200,
          data: {
            status: 'success',
            type: 'transactions',
            message: '1 record received: 1 created.',
            request_id: body.request_id,
            batch_id: expect.stringMatching(uuidV7),
            error: null,
            counts: { received: 1, created: 1, updated: 0, unchanged: 0, stale: 0, failed: 0 },
            errors: [],
            stale: [],
            warnings: [],
          },
        },
      ],
    });
    expect(headers.get('x-request-id')).toBe(body.request_id);
  });

  it('with nothing to replay is 200 without batches', async () => {
    await api.upload('tags', [badTag()]);
    const { status, body } = await replayRejections(api, { type: 'shops' });
    expect([status, body.batches, body.remaining]).toEqual([200, [], 0]);
    expect(await listRejections(api)).toHaveLength(1);
  });

  it.each([
    ['all good', 200, [true, true]],
    ['some bad', 207, [true, false]],
    ['all bad', 400, [false, false]],
  ])('of records now %s is %i', async (_what, status, sound) => {
    const shop = newShop();
    const transactions = sound.map((good) => newTransaction(good ? shop.shop_id : randomUUID()));
    await api.upload('transactions', transactions);
    await api.upload('shops', [shop]);
    const replayed = await replayRejections(api);
    expect([replayed.status, replayed.body.batches[0].status]).toEqual([status, status]);
    const open = transactions.filter((_, at) => !sound[at]).map(({ transaction_id }) => transaction_id);
    expect((await listRejections(api)).map(({ id }) => id)).toEqual(open);
  });

  it('keeps what fails again, once and with its new reason', async () => {
    const [shop, tag] = [newShop(), newTag()];
    const link = { shop_tag_id: randomUUID(), shop_id: shop.shop_id, tag_id: tag.tag_id };
    await api.upload('shop-tags', [link]);
    const fieldsOf = (rejections: Rejection[]) =>
      rejections.map(({ errors }) => errors.map(({ field }) => field).toSorted());
    const before = await listRejections(api);
    expect(fieldsOf(before)).toEqual([['shop_id', 'tag_id']]);
    await api.upload('shops', [shop]);
    const replayed = await replayRejections(api);
    expect(replayed.status).toBe(400);
    expect(replayed.body.batches[0].data.errors).toMatchObject([
      { id: link.shop_tag_id, field: 'tag_id', code: 'reference_not_found' },
    ]);
    const after = await listRejections(api);
    expect(fieldsOf(after)).toEqual([['tag_id']]);
    expect(after[0]).toMatchObject({ type: 'shop-tags', id: link.shop_tag_id, record: link });
    expect(await summariseRejections(api)).toMatchObject([{ field: 'tag_id', count: 1 }]);
    expect(await openOf()).toMatchObject({ 'shop-tags': 1 });
    await api.upload('tags', [tag]);
    expect((await replayRejections(api)).status).toBe(200);
    expect(await listRejections(api)).toEqual([]);
  });

  it('processes only what the filters match', async () => {
    const shop = newShop();
    const [first, second] = [newTransaction(shop.shop_id), newTransaction(shop.shop_id)];
    const { body } = await api.upload('transactions', [first]);
    await api.upload('transactions', [second]);
    await api.upload('tags', [badTag()]);
    await api.upload('shops', [shop]);
    expect((await replayRejections(api, { code: 'wrong_type' })).status).toBe(400);
    expect((await replayRejections(api, { field: 'region' })).body.batches).toEqual([]);
    expect(await listRejections(api)).toHaveLength(3);
    expect(countsOf(await replayRejections(api, { request_id: body.request_id }))).toEqual([
      { received: 1, created: 1 },
    ]);
    expect((await listRejections(api, { type: 'transactions' })).map(({ id }) => id)).toEqual([
      second.transaction_id,
    ]);
    expect(countsOf(await replayRejections(api, { field: 'shop_id', type: 'transactions' }))).toEqual([
      { received: 1, created: 1 },
    ]);
    expect((await listRejections(api)).map(({ type }) => type)).toEqual(['tags']);
  });

  it('of several types follows the dependencies, not the age', async () => {
    const shop = newShop();
    const transaction = newTransaction(shop.shop_id);
    await api.upload('transactions', [transaction]);
    await api.upload('shops', [{ ...shop, name: 7 }]);
    // Correct the records in the database, as if a rule had been relaxed, so that one replay can store both.
    await queryDatabase(server.databaseUrl, 'update rejections set record = $1 where record_id = $2', [
      JSON.stringify(shop),
      shop.shop_id,
    ]);
    const replayed = await replayRejections(api);
    expect([replayed.status, replayed.body.type]).toEqual([200, null]);
    const batches = replayed.body.batches.map(
      ({ batch, status, data }: { batch: number; status: number; data: { type: string } }) => [
        batch,
        status,
        data.type,
      ],
    );
    expect(batches).toEqual([
      [1, 200, 'shops'],
      [2, 200, 'transactions'],
    ]);
    expect(await listRejections(api)).toEqual([]);
    expect(await countStored(server.databaseUrl, 'shops', 'shop_id', [shop.shop_id])).toBe(1);
  });

  it('runs in batches of 1,000', async () => {
    const shop = newShop();
    await api.upload(
      'transactions',
      many(2_500, () => newTransaction(shop.shop_id)),
    );
    await api.upload('shops', [shop]);
    const replayed = await replayRejections(api);
    expect(replayed.body.batches.map(({ batch }: { batch: number }) => batch)).toEqual([1, 2, 3]);
    expect(countsOf(replayed)).toEqual(
      [1_000, 1_000, 500].map((count) => ({ received: count, created: count })),
    );
    expect(await openOf()).toMatchObject({ transactions: 0 });
  });

  it('twice at the same time stores each once, and keeps nothing', async () => {
    const shop = newShop();
    const transactions = many(2_000, () => newTransaction(shop.shop_id));
    await api.upload('transactions', transactions);
    await api.upload('shops', [shop]);
    const answers = await Promise.all(many(4, () => replayRejections(api)));
    for (const { status } of answers) expect(status).toBe(200);
    const created = answers.flatMap(countsOf).reduce((sum, counts) => sum + (counts.created ?? 0), 0);
    expect(created).toBe(2_000);
    expect(await listRejections(api)).toEqual([]);
    expect(await overviewOf(api)).toMatchObject({
      shops: { records: 1, open_rejections: 0 },
      transactions: { records: 2_000, open_rejections: 0 },
    });
  });

  it('does not restore records that were too large to be kept: they stay until they are uploaded', async () => {
    const tag = newTag();
    const shop = newShop();
    await api.upload('tags', [{ ...tag, note: 'x'.repeat(70_000) }]);
    await api.upload('transactions', [newTransaction(shop.shop_id)]);
    await api.upload('shops', [shop]);
    await replayRejections(api);
    expect(await listRejections(api)).toMatchObject([
      { type: 'tags', id: tag.tag_id, record: null, errors: [{ field: null, code: 'record_too_large' }] },
    ]);
    expect(await openOf()).toMatchObject({ tags: 1, transactions: 0 });
    expect((await api.upload('tags', [tag])).status).toBe(200);
    expect(await listRejections(api)).toEqual([]);
  });

  it('stores a large record whose reference was missing', async () => {
    const shop = newShop();
    const offer = {
      offer_id: randomUUID(),
      shop_id: shop.shop_id,
      name: 'Ten off',
      type: 'PERCENT',
      value: 10,
      region: 'GB',
      allowed_branches: 'x'.repeat(20_000),
    };
    expect((await api.upload('offers', [offer])).status).toBe(400);
    await api.upload('shops', [shop]);
    expect((await replayRejections(api)).status).toBe(200);
    expect((await api.batch('offers', [offer])).counts.unchanged).toBe(1);
  });
});

describe('discarding', () => {
  it('removes what the filters match, and reports the number', async () => {
    const { body } = await api.upload('tags', [badTag(), badTag(), newTag({ name: undefined })]);
    await api.upload('transactions', [danglingTransaction()]);
    const discard = async (query: Record<string, string>) => {
      const { status, body: answer } = await discardRejections(api, query);
      expect(status).toBe(200);
      return answer;
    };
    expect(await discard({ type: 'shops' })).toEqual({ discarded: 0, has_more: false });
    expect(await discard({ type: 'tags', code: 'wrong_type' })).toEqual({ discarded: 2, has_more: false });
    expect(await openOf()).toEqual({ tags: 1, transactions: 1 });
    expect(await discard({ request_id: body.request_id, field: 'name' })).toEqual({
      discarded: 1,
      has_more: false,
    });
    expect((await listRejections(api)).map(({ type }) => type)).toEqual(['transactions']);
    expect(await discard({})).toEqual({ discarded: 1, has_more: false });
    expect(await discard({})).toEqual({ discarded: 0, has_more: false });
    expect(await summariseRejections(api)).toEqual([]);
    expect((await replayRejections(api)).body.batches).toEqual([]);
  });

  it('stores nothing', async () => {
    const shop = newShop();
    const transaction = newTransaction(shop.shop_id);
    await api.upload('transactions', [transaction]);
    await api.upload('shops', [shop]);
    await discardRejections(api);
    expect((await api.batch('transactions', [transaction])).counts.created).toBe(1);
  });
});

describe('asking wrongly', () => {
  const wrong: [string, string][] = [
    ['typ', 'tags'],
    ['type', 'tag'],
    ['type', ''],
    ['request_id', 'x'],
    ['code', '\u0000'],
    ['field', '\u0000'],
    ['Code', 'wrong_type'],
    ['code', 'wrong_typ'],
    ['field', 'x'.repeat(65)],
    ['__proto__', '1'],
  ];
  it.each(wrong)('27d: %s=%j is refused everywhere, and changes nothing', async (name, value) => {
    await api.upload('tags', [badTag()]);
    const before = await listRejections(api);
    const query = new URLSearchParams({ [name]: value });
    for (const path of ['/v1/rejections', '/v1/rejections/summary'])
      expectError(await api.get(`${path}?${query}`), 400, [name]);
    expectError(await replayRejections(api, { [name]: value }), 400, [name]);
    expectError(await discardRejections(api, { [name]: value }), 400, [name]);
    expect(await listRejections(api)).toEqual(before);
  });

  it('27d: only the list accepts a page size, from 1 to 1,000', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'cursor=x'])
      expectError(await api.get(`/v1/rejections?${query}`), 400, [query.split('=')[0]!]);
    for (const name of ['limit', 'cursor']) {
      const query = { [name]: name === 'limit' ? '5' : randomUUID() };
      expectError(await api.get(`/v1/rejections/summary?${new URLSearchParams(query)}`), 400, [name]);
      expectError(await replayRejections(api, query), 400, [name]);
      expectError(await discardRejections(api, query), 400, [name]);
    }
  });

  it('37: listing needs data:read, and replaying and discarding need data:write for all types', async () => {
    await api.upload('tags', [badTag()]);
    const keyed = async (...scopes: string[]) =>
      apiOf(server.url, await server.createKey(organisation, ...scopes));
    const statuses = async (by: Api) =>
      [
        await by.get('/v1/rejections'),
        await by.get('/v1/rejections/summary'),
        await replayRejections(by),
        await discardRejections(by, { type: 'shops' }),
      ].map(({ status }) => status);
    expect(await statuses(await keyed('data:read'))).toEqual([200, 200, 403, 403]);
    expect(await statuses(await keyed('data:write'))).toEqual([403, 403, 400, 200]);
    expect(await statuses(await keyed('data:write:tags'))).toEqual([403, 403, 403, 403]);
    expect(await statuses(await keyed('interactions:write', 'interactions:read'))).toEqual(
      Array(4).fill(403),
    );
    expect(await statuses(apiOf(server.url))).toEqual(Array(4).fill(401));
    expect(await listRejections(api)).toHaveLength(1);
  });
});
