import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { badTag, many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { listRejections, replayRejections, summariseRejections } from '../support/rejections.ts';

/** Tests how a later upload of the same record affects its rejection. */

let server: SharedServer;
let api: Api;
beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  api = apiOf(server.url, await server.createKey(`acme-${randomUUID().slice(0, 8)}`));
});

const [older, newer] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'];

it.each([
  ['a newer rejection stays', newer, older, 1],
  ['one with the same time is removed', newer, newer, 0],
  ['an older one is removed', older, newer, 0],
  ['one without a time is removed', undefined, older, 0],
  ['one is removed if the stored record has no time', newer, undefined, 0],
])('when a record is stored, %s', async (_what, rejected, stored, left) => {
  const tag = newTag();
  await api.upload('tags', [{ ...tag, name: 7, updated: rejected }]);
  expect((await api.upload('tags', [{ ...tag, updated: stored }])).status).toBe(200);
  expect(await listRejections(api)).toHaveLength(left);
  expect(await overviewOf(api)).toMatchObject({ tags: { records: 1, open_rejections: left } });
});

it('a newer version whose reference was missing is stored by a replay, though an older one was stored meanwhile', async () => {
  const [known, missing] = [newShop(), newShop()];
  await api.upload('shops', [known]);
  const transaction = newTransaction(known.shop_id);
  const next = { ...transaction, shop_id: missing.shop_id, amount: 99, updated: newer };
  expect((await api.upload('transactions', [next])).status).toBe(400);
  expect((await api.upload('transactions', [{ ...transaction, updated: older }])).status).toBe(200);
  await api.upload('shops', [missing]);
  expect((await replayRejections(api)).status).toBe(200);
  const { body } = await api.get(`/v1/data/transactions/${transaction.transaction_id}`);
  expect(body).toMatchObject({ amount: 99, shop_id: missing.shop_id, updated: newer });
  expect(await listRejections(api)).toEqual([]);
});

it('a replay that stores an older version keeps a newer rejection of the same record', async () => {
  const [first, second] = [newShop(), newShop()];
  const transaction = newTransaction(first.shop_id);
  await api.upload('transactions', [{ ...transaction, shop_id: second.shop_id, amount: 2, updated: newer }]);
  await api.upload('transactions', [{ ...transaction, amount: 1, updated: older }]);
  await api.upload('shops', [first]);
  await replayRejections(api);
  expect(await listRejections(api)).toMatchObject([{ record: { amount: 2 } }]);
  await api.upload('shops', [second]);
  await replayRejections(api);
  const { body } = await api.get(`/v1/data/transactions/${transaction.transaction_id}`);
  expect(body).toMatchObject({ amount: 2 });
  expect(await listRejections(api)).toEqual([]);
});

it('a replay updates last_upload', async () => {
  const shop = newShop();
  await api.upload('transactions', [newTransaction(shop.shop_id)]);
  await api.upload('shops', [shop]);
  const before = (await overviewOf(api)).transactions!.last_upload;
  await replayRejections(api);
  const after = (await overviewOf(api)).transactions!.last_upload;
  expect(Date.parse(after!)).toBeGreaterThan(Date.parse(before!));
});

describe('a later upload', () => {
  it('that stores the same id settles the rejection, and no other', async () => {
    const [first, second] = [newTag(), newTag()];
    await api.upload('tags', [{ ...first, name: 7 }]);
    await api.upload('tags', [
      { ...first, name: 8 },
      { ...second, name: 7 },
    ]);
    expect(await listRejections(api)).toHaveLength(2);
    await api.upload('tags', [first, newTag()]);
    expect((await listRejections(api)).map(({ id }) => id)).toEqual([second.tag_id]);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 1 } });
  });

  it('that changes a stored record settles the rejection of its other version', async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    await api.upload('tags', [{ ...tag, name: 7 }]);
    expect(await listRejections(api)).toHaveLength(1);
    await api.upload('tags', [{ ...tag, name: 'renamed' }]);
    expect(await listRejections(api)).toEqual([]);
    expect((await replayRejections(api)).body.batches).toEqual([]);
  });

  it('that fails again replaces the rejection', async () => {
    const tag = newTag();
    const first = await api.upload('tags', [{ ...tag, name: 7 }]);
    const [before] = await listRejections(api);
    const second = await api.upload('tags', [newTag(), { ...tag, name: null, note: 'again' }]);
    expect([first.status, second.status]).toEqual([400, 207]);
    const [after, ...others] = await listRejections(api);
    expect(others).toEqual([]);
    expect(after).toMatchObject({
      id: tag.tag_id,
      index: 1,
      request_id: second.body.request_id,
      errors: [{ field: 'name', code: 'required' }],
      record: { note: 'again' },
    });
    expect(after!.rejection_id > before!.rejection_id).toBe(true);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 1 } });
    expect(await summariseRejections(api)).toMatchObject([{ code: 'required', count: 1 }]);
  });

  it('that fails with an older version keeps the rejection unchanged', async () => {
    const tag = newTag({ name: 7 });
    await api.upload('tags', [{ ...tag, updated: '2026-02-01T00:00:00Z' }]);
    const before = await listRejections(api);
    await api.upload('tags', [{ ...tag, updated: '2026-01-01T00:00:00Z' }]);
    expect(await listRejections(api)).toEqual(before);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 1 } });
  });

  it('in which one record fails several times keeps one rejection, the last', async () => {
    const tag = newTag();
    await api.upload('tags', [
      { ...tag, name: 7 },
      { ...tag, name: null },
      { ...tag, name: false },
    ]);
    expect(await listRejections(api)).toMatchObject([{ index: 2, record: { name: false } }]);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 1 } });
  });

  it('settles the rejection even if the type has many', async () => {
    const last = newTag({ tag_id: 'ffffffff-ffff-4fff-bfff-ffffffffffff' });
    const first = await api.upload('tags', [...many(500, () => badTag()), { ...last, name: 7 }]);
    expect(first.status).toBe(400);
    expect((await api.upload('tags', [{ ...last, name: null }])).status).toBe(400);
    expect(await listRejections(api, { code: 'required' })).toMatchObject([{ id: last.tag_id }]);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 501 } });
    expect((await api.upload('tags', [last])).status).toBe(200);
    expect(await listRejections(api, { code: 'required' })).toEqual([]);
    expect(await overviewOf(api)).toMatchObject({ tags: { records: 1, open_rejections: 500 } });
  });

  it('that fails elsewhere, for another type or organisation, settles none', async () => {
    const id = randomUUID();
    const other = apiOf(server.url, await server.createKey('other'));
    await api.upload('tags', [{ tag_id: id, name: 7 }]);
    await api.upload('tags', [{ tag_id: id, name: 8 }]);
    await api.upload('keywords', [{ keyword_id: id, name: 'vegan' }]);
    await other.upload('tags', [{ tag_id: id, name: 'vegan' }]);
    expect((await listRejections(api)).map((rejection) => rejection.id)).toEqual([id]);
  });
});
