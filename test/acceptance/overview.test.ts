import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import {
  badTag,
  danglingTransaction,
  many,
  newShop,
  newTag,
  newTransaction,
} from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { discardRejections, replayRejections } from '../support/rejections.ts';
import { untilStored } from '../support/until-stored.ts';

/** GET /v1/data returns the exact number of an organisation's records of each type at any moment. */

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

describe('interactions', () => {
  const click = (item_id: string, more: object = {}) => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id,
    event_timestamp: 1_700_000_000,
    ...more,
  });

  it('106: are counted, whichever address they use, and failed ones are not', async () => {
    const shop = newShop();
    await api.upload('shops', [shop]);
    const before = Date.now();
    expect((await api.post('/user-interactions', click(shop.shop_id))).status).toBe(201);
    for (let time = 0; time < 2; time++)
      await api.post('/user-interactions', click(shop.shop_id), { 'idempotency-key': 'once' });
    await api.post('/user-interactions', click(randomUUID()));
    await api.post('/user-interactions/batch', { records: [click(shop.shop_id), click(randomUUID())] });
    const { interactions } = await overviewOf(api);
    expect(interactions).toMatchObject({ records: 3, newest_updated: null, open_rejections: 2 });
    expect(Date.parse(interactions!.last_upload!)).toBeGreaterThanOrEqual(before);
  });

  it('106: that only failed are listed with their rejections', async () => {
    await api.post('/user-interactions', click(randomUUID()));
    const { interactions } = await overviewOf(api);
    expect(interactions).toMatchObject({ records: 0, last_upload: null, open_rejections: 1 });
  });

  it('106: of many concurrent writers are counted exactly, with known and new items, and stay so once rolled up', async () => {
    const shops = Array.from({ length: 50 }, () => newShop());
    await api.upload('shops', shops);
    const other = apiOf(server.url, await server.createKey(`${organisation}-too`));
    await other.upload('shops', shops);
    const item = (at: number) => shops[at % shops.length]!.shop_id;
    const sent = Array.from({ length: 600 }, (_, at) => {
      const to = at % 3 === 0 ? other : api;
      if (at % 20 === 0) {
        const records = [click(item(at)), click(randomUUID()), click(item(at + 1))];
        return to.post('/user-interactions/batch', { records });
      }
      const key = at % 7 === 0 ? { 'idempotency-key': `key ${at}` } : undefined;
      return to.post('/user-interactions', click(at % 11 === 0 ? randomUUID() : item(at)), key);
    });
    await Promise.all(sent);
    for (const each of [api, other]) {
      const { interactions } = await overviewOf(each);
      const { body } = await each.get('/user-interactions', { accept: 'application/x-ndjson' });
      const stored = body.trimEnd().split('\n').length;
      expect(stored).toBeGreaterThan(100);
      expect(interactions!.records).toBe(stored);
      const failed = interactions!.open_rejections;
      await each.upload('shops', [newShop()]);
      expect((await replayRejections(each, { type: 'interactions' })).body.remaining).toBe(failed);
    }
    const before = (await overviewOf(api)).interactions;
    await expect
      .poll(
        async () => {
          const [changes] = await queryDatabase<{ count: string }>(
            server.databaseUrl,
            `select count(*) from record_count_changes where type = 'interactions'`,
          );
          return changes!.count;
        },
        { interval: 500 },
      )
      .toBe('0');
    const after = (await overviewOf(api)).interactions!;
    expect(after.records).toBe(before!.records);
  });
});

describe('the overview', () => {
  it('of an organisation without records is empty', async () => {
    expect((await api.get('/v1/data')).body).toEqual({ types: [] });
  });

  it('has each type with data, and no other', async () => {
    const shop = newShop({ updated: '2026-01-01T10:00:00.123456+01:00' });
    const before = Date.now();
    await api.upload('shops', [shop, newShop({ updated: '2025-12-31T00:00:00Z' }), newShop()]);
    await api.upload('transactions', [newTransaction(shop.shop_id), danglingTransaction()]);
    await api.upload('tags', [badTag(), badTag()]);
    const after = Date.now();
    const overview = await overviewOf(api);
    expect(overview).toEqual({
      shops: {
        type: 'shops',
        records: 3,
        newest_updated: '2026-01-01T09:00:00.123456Z',
        last_upload: expect.any(String),
        open_rejections: 0,
      },
      transactions: {
        type: 'transactions',
        records: 1,
        newest_updated: null,
        last_upload: expect.any(String),
        open_rejections: 1,
      },
      tags: {
        type: 'tags',
        records: 0,
        newest_updated: null,
        last_upload: overview.tags!.last_upload,
        open_rejections: 2,
      },
    });
    for (const type of ['shops', 'transactions']) {
      expect(Date.parse(overview[type]!.last_upload!)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(overview[type]!.last_upload!)).toBeLessThanOrEqual(after);
    }
  });

  it('counts created records, and not changed, unchanged, stale or failed ones', async () => {
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    const recordsAfter = async (records: unknown[]) => {
      await api.upload('tags', records);
      return (await overviewOf(api)).tags!.records;
    };
    expect(await recordsAfter([tag, newTag()])).toBe(2);
    expect(await recordsAfter([tag])).toBe(2);
    expect(await recordsAfter([{ ...tag, name: 'renamed' }])).toBe(2);
    expect(await recordsAfter([{ ...tag, updated: '2026-01-01T00:00:00Z' }])).toBe(2);
    expect(await recordsAfter([badTag(), newTag(), newTag()])).toBe(4);
  });

  it('has the newest `updated`, in whatever order they arrive', async () => {
    const newest = async () => (await overviewOf(api)).tags!.newest_updated;
    await api.upload('tags', [newTag({ updated: '2026-01-02T00:00:00Z' })]);
    expect(await newest()).toBe('2026-01-02T00:00:00Z');
    await api.upload('tags', [newTag({ updated: '2026-01-01T00:00:00Z' }), newTag()]);
    expect(await newest()).toBe('2026-01-02T00:00:00Z');
    await api.upload('tags', [badTag({ updated: '2026-02-01T00:00:00Z' })]);
    expect(await newest()).toBe('2026-01-02T00:00:00Z');
    await api.upload('tags', [newTag({ updated: '2026-01-03T00:00:00.5Z' })]);
    expect(await newest()).toBe('2026-01-03T00:00:00.5Z');
  });

  it('has the last upload of that type', async () => {
    const last = async (type: string) => Date.parse((await overviewOf(api))[type]!.last_upload!);
    await api.upload('tags', [newTag()]);
    await api.upload('keywords', [{ keyword_id: randomUUID(), name: 'vegan' }]);
    const [tags, keywords] = [await last('tags'), await last('keywords')];
    await sleep(5);
    const before = Date.now();
    await api.upload('tags', [newTag()]);
    expect(tags).toBeLessThan(before);
    expect(await last('tags')).toBeGreaterThanOrEqual(before);
    expect(await last('tags')).toBeLessThanOrEqual(Date.now());
    expect(await last('keywords')).toBe(keywords);
  });

  it('counts open rejections as they appear and disappear', async () => {
    const open = async () => (await overviewOf(api)).transactions!.open_rejections;
    const shop = newShop();
    const transactions = many(4, () => newTransaction(shop.shop_id));
    await api.upload('transactions', [...transactions, danglingTransaction(), { region: 7 }]);
    expect(await open()).toBe(6);
    await api.upload('shops', [shop]);
    await api.upload('transactions', [transactions[0]]);
    expect(await open()).toBe(5);
    await replayRejections(api);
    expect(await open()).toBe(2);
    await discardRejections(api, { code: 'reference_not_found' });
    expect(await open()).toBe(1);
  });

  it('is limited to one organisation', async () => {
    const other = apiOf(server.url, await server.createKey(`other-${organisation}`));
    const tag = newTag();
    await api.upload('tags', [tag, newTag()]);
    await other.upload('tags', [tag]);
    expect((await overviewOf(api)).tags!.records).toBe(2);
    expect((await overviewOf(other)).tags!.records).toBe(1);
  });

  it('needs data:read, and accepts no parameters', async () => {
    const others = ['data:write', 'interactions:write', 'interactions:read'];
    const without = apiOf(server.url, await server.createKey(organisation, ...others));
    expectError(await without.get('/v1/data'), 403);
    const reader = apiOf(server.url, await server.createKey(organisation, 'data:read'));
    expect((await reader.get('/v1/data')).status).toBe(200);
    expectError(await api.get('/v1/data?type=tags'), 400, ['type']);
  });
});

describe('under 20 concurrent uploads', () => {
  const times = 20;

  it('of different records, every one is counted', async () => {
    const answers = await Promise.all(
      many(times, () => {
        const tags = many(1_500, (at) => (at % 100 === 0 ? badTag() : newTag()));
        return untilStored(() => api.upload('tags', tags));
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(times).fill(207));
    expect((await overviewOf(api)).tags).toMatchObject({
      records: times * 1_485,
      open_rejections: times * 15,
    });
  });

  it('of the same records, each is counted once', async () => {
    const tags = many(1_500, () => newTag());
    const answers = await Promise.all(
      many(times, (at) => untilStored(() => api.upload('tags', at % 2 ? tags : tags.toReversed()))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(times).fill(200));
    expect((await overviewOf(api)).tags).toMatchObject({ records: 1_500, open_rejections: 0 });
  });

  it('of records that overlap, in differing versions, each is counted once', async () => {
    const tags = many(3_000, () => newTag());
    const answers = await Promise.all(
      many(times, (at) => {
        const own = tags.slice(at * 100, at * 100 + 1_100).map((tag) => ({ ...tag, name: `version ${at}` }));
        return untilStored(() => api.upload('tags', own));
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(times).fill(200));
    expect((await overviewOf(api)).tags).toMatchObject({ records: 3_000, open_rejections: 0 });
  });

  it.each([
    ['', []],
    [', during a replay and a discard', [replayRejections, discardRejections]],
  ])('that settle the same rejections%s, each rejection is settled once', async (_what, beside) => {
    const tags = many(1_000, () => newTag());
    await api.upload(
      'tags',
      tags.map((tag) => ({ ...tag, name: 7 })),
    );
    expect((await overviewOf(api)).tags).toMatchObject({ records: 0, open_rejections: 1_000 });
    const answers = await Promise.all([
      ...many(times, () => untilStored(() => api.upload('tags', tags))),
      ...beside.map((end) => untilStored(() => end(api))),
    ]);
    for (const { status } of answers) expect(status).toBeLessThan(500);
    expect((await overviewOf(api)).tags).toMatchObject({ records: 1_000, open_rejections: 0 });
    const rows = await queryDatabase(
      server.databaseUrl,
      `select from rejections join organisations using (organisation_id) where slug = $1`,
      [server.slugOf(organisation)],
    );
    expect(rows).toEqual([]);
  });
});
