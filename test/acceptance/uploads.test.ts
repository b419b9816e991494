// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';

/** Tests the result for each record (rules 1 to 9 of docs/api-behaviour.md). Each test is named after its rule. */

let server: SharedServer;
let api: Api;
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
});

const newShop = (fields: object = {}) => ({ shop_id: randomUUID(), name: 'Bakery', region: 'GB', ...fields });
const second = (at: number) => `2026-01-01T00:00:0${at}Z`;
const hoursAhead = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
const counts = (some: object) => ({
  received: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  failed: 0,
  ...some,
});

async function expectStored(record: object, type = 'shops') {
  const again = await api.batch(type, [record]);
  expect(again.counts, 'what is sent again is what is stored').toEqual(counts({ received: 1, unchanged: 1 }));
}

describe('an id that exists', () => {
  it('1: a retry of the same upload changes nothing', async () => {
    const shops = [newShop(), newShop({ updated: second(1) }), newShop({ is_public: true })];
    expect((await api.batch('shops', shops)).counts).toEqual(counts({ received: 3, created: 3 }));
    const retry = await api.batch('shops', shops);
    expect(retry).toMatchObject({ http: 200, status: 'success', error: null });
    expect(retry.counts).toEqual(counts({ received: 3, unchanged: 3 }));
  });

  it('1: an id that exists is replaced as a whole; an omitted field becomes null', async () => {
    const shop = newShop({ is_public: true, created: second(1) });
    await api.batch('shops', [shop]);
    const replaced = { shop_id: shop.shop_id, name: 'Café', region: 'FR' };
    expect((await api.batch('shops', [replaced])).counts).toEqual(counts({ received: 1, updated: 1 }));
    await expectStored({ ...replaced, is_public: null, created: null });
  });

  it('1: an upload repeated in part stores what is new and leaves the rest', async () => {
    const known = newShop();
    await api.batch('shops', [known]);
    const { counts: found } = await api.batch('shops', [newShop(), known, newShop()]);
    expect(found).toEqual(counts({ received: 3, created: 2, unchanged: 1 }));
  });

  it('1: the same upload many times at once stores each record once', async () => {
    const shops = Array.from({ length: 50 }, () => newShop({ updated: second(1) }));
    const sent = [...Array(6).keys()].map((turn) =>
      api.upload('shops', turn % 2 ? shops : shops.toReversed()),
    );
    const answers = await Promise.all(sent);
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    const created = answers.map(({ body }) => body.batches[0].data.counts.created);
    expect(created.reduce((sum, one) => sum + one)).toBe(50);
  });
});

describe('an older version that arrives late', () => {
  it('2: is skipped and listed as stale, and is not a failure', async () => {
    const shop = newShop({ updated: second(5) });
    await api.batch('shops', [shop]);
    const late = await api.batch('shops', [newShop(), { ...shop, name: 'Old', updated: second(4) }]);
    expect(late).toMatchObject({ http: 200, status: 'success', error: null, errors: [], stale: [1] });
    expect(late.counts).toEqual(counts({ received: 2, created: 1, stale: 1 }));
    await expectStored(shop);
  });

  it('2: one with the same time is applied', async () => {
    const shop = newShop({ updated: second(5) });
    await api.batch('shops', [shop]);
    const sameTime = { ...shop, name: 'Same time' };
    expect((await api.batch('shops', [sameTime])).counts).toEqual(counts({ received: 1, updated: 1 }));
    await expectStored(sameTime);
  });

  it('2: one without a time is applied, and so is one for a record without a time', async () => {
    const timeless = newShop();
    await api.batch('shops', [{ ...timeless, updated: second(5) }]);
    expect((await api.batch('shops', [timeless])).counts).toEqual(counts({ received: 1, updated: 1 }));
    await expectStored(timeless);
    const older = { ...timeless, updated: second(1) };
    expect((await api.batch('shops', [older])).counts).toEqual(counts({ received: 1, updated: 1 }));
    await expectStored(older);
  });

  it('2: times are compared as instants, to the microsecond', async () => {
    const shop = newShop({ updated: '2026-01-01T00:00:00.000002Z' });
    await api.batch('shops', [shop]);
    const older = { ...shop, name: 'A microsecond older', updated: '2026-01-01T00:00:00.000001Z' };
    expect((await api.batch('shops', [older])).stale).toEqual([0]);
    const abroad = { ...shop, name: 'The same instant', updated: '2026-01-01T02:00:00.000002+02:00' };
    expect((await api.batch('shops', [abroad])).counts.updated).toBe(1);
  });

  it('2: an older delete does not delete, and an older record does not restore', async () => {
    const shop = newShop({ updated: second(5), is_deleted: false });
    await api.batch('shops', [shop]);
    expect((await api.batch('shops', [{ ...shop, updated: second(4), is_deleted: true }])).stale).toEqual([
      0,
    ]);
    const deleted = { ...shop, updated: second(6), is_deleted: true };
    await api.batch('shops', [deleted]);
    expect((await api.batch('shops', [shop])).stale).toEqual([0]);
    await expectStored(deleted);
  });

  it('2: stale records are listed by their index in the request, whatever their batch', async () => {
    const shops = Array.from({ length: 1_001 }, () => newShop({ updated: second(5) }));
    await api.upload('shops', shops);
    const old = [0, 999, 1_000];
    const sent = shops.map((shop, at) => (old.includes(at) ? { ...shop, updated: second(1) } : shop));
    const { status, body } = await api.upload('shops', sent);
    expect(status).toBe(200);
    expect(body.batches.map(({ data }: { data: { stale: number[] } }) => data.stale)).toEqual([
      [0, 999],
      [1_000],
    ]);
  });

  it('2: a time more than 24 hours ahead is accepted with a warning, a nearer one without', async () => {
    const shop = newShop({ updated: hoursAhead(25) });
    const { counts: stored, warnings } = await api.batch('shops', [
      shop,
      newShop({ updated: hoursAhead(23) }),
    ]);
    expect(stored).toEqual(counts({ received: 2, created: 2 }));
    expect(warnings).toMatchObject([{ field: 'updated', count: 1 }]);
    expect((await api.batch('shops', [{ ...shop, updated: hoursAhead(0) }])).stale).toEqual([0]);
  });
});

describe('the same id more than once in a request', () => {
  it('3: stored T5, then T3, none and T4 in one request, ends at T4', async () => {
    const at = (name: string, updated?: string) => ({ ...shop, name, ...(updated && { updated }) });
    const shop = newShop();
    await api.batch('shops', [at('five', second(5))]);
    const sent = [at('three', second(3)), at('none'), at('four', second(4))];
    const { counts: done, stale } = await api.batch('shops', sent);
    expect(done).toEqual(counts({ received: 3, updated: 2, stale: 1 }));
    expect(stale).toEqual([0]);
    await expectStored(sent[2]!);
  });

  it('3: a new id twice is created and then updated; the last one stays', async () => {
    const [first, last] = [newShop(), newShop({ name: 'Last' })];
    const sent = [first, { ...last, shop_id: first.shop_id }];
    expect((await api.batch('shops', sent)).counts).toEqual(counts({ received: 2, created: 1, updated: 1 }));
    await expectStored(sent[1]!);
  });

  it('3: back and forth three times counts three changes', async () => {
    const shop = newShop();
    const other = { ...shop, name: 'Other' };
    const { counts: done } = await api.batch('shops', [shop, other, shop]);
    expect(done).toEqual(counts({ received: 3, created: 1, updated: 2 }));
    await expectStored(shop);
  });

  it('3: the very same record twice is created once and then unchanged', async () => {
    const shop = newShop({ updated: second(1) });
    const { counts: done } = await api.batch('shops', [shop, shop, newShop()]);
    expect(done).toEqual(counts({ received: 3, created: 2, unchanged: 1 }));
  });

  it('3: an id in capitals is the same id', async () => {
    const shop = newShop();
    const capitals = { ...shop, shop_id: shop.shop_id.toUpperCase(), name: 'Capitals' };
    expect((await api.batch('shops', [shop, capitals])).counts).toEqual(
      counts({ received: 2, created: 1, updated: 1 }),
    );
    await expectStored({ ...shop, name: 'Capitals' });
  });

  it('3: a failed one is ignored, wherever it is', async () => {
    const good = newShop({ updated: second(1) });
    const bad = { ...good, name: null, updated: second(9) };
    const last = { ...good, name: 'Last', updated: second(2) };
    const done = await api.batch('shops', [bad, good, bad, last, bad]);
    expect(done).toMatchObject({ http: 207, status: 'partial', stale: [] });
    expect(done.counts).toEqual(counts({ received: 5, created: 1, updated: 1, failed: 3 }));
    await expectStored(last);
  });

  it('3: the order holds across batches', async () => {
    const shop = newShop({ updated: second(5) });
    const others = Array.from({ length: 999 }, () => newShop());
    const newer = { ...shop, name: 'Newer', updated: second(6) };
    const { body } = await api.upload('shops', [shop, ...others, newer, shop]);
    expect(body.batches[0].data.counts.created).toBe(1_000);
    expect(body.batches[1].data).toMatchObject({ counts: { updated: 1, stale: 1 }, stale: [1_001] });
    await expectStored(newer);
  });
});

describe('deleted records', () => {
  it('4: a deleted record stays, and can still be referenced', async () => {
    const shop = newShop({ is_deleted: true });
    expect((await api.batch('shops', [shop])).counts.created).toBe(1);
    await expectStored(shop);
    const branch = { branch_id: randomUUID(), shop_id: shop.shop_id, name: 'Branch', region: 'GB' };
    expect(await api.batch('branches', [branch])).toMatchObject({ http: 200, counts: { created: 1 } });
  });

  it('4: a record can be deleted and restored', async () => {
    const shop = newShop();
    for (const record of [shop, { ...shop, is_deleted: true }, shop]) {
      const { counts: done } = await api.batch('shops', [record]);
      expect(done.created + done.updated).toBe(1);
    }
    await expectStored({ ...shop, is_deleted: false });
  });

  it('4: a deleted record is left out of reads by default', async () => {
    const [shop, deleted] = [newShop(), newShop({ is_deleted: true })];
    await api.batch('shops', [shop, deleted]);
    const listed = async (query: Record<string, string>) => {
      const pages = await allPages<{ shop_id: string }>(api, '/v1/data/shops', 'records', query);
      return pages.flat().map(({ shop_id }) => shop_id);
    };
    expect(await listed({})).toContain(shop.shop_id);
    expect(await listed({})).not.toContain(deleted.shop_id);
    const all = await listed({ include_deleted: 'true' });
    expect(all).toEqual(expect.arrayContaining([shop.shop_id, deleted.shop_id]));
    expect((await api.get(`/v1/data/shops/${deleted.shop_id}`)).body.is_deleted).toBe(true);
  });
});

describe('omitted fields', () => {
  it('5: is_deleted omitted is false; any other field omitted is null, which is not false', async () => {
    const shop = newShop();
    await api.batch('shops', [shop]);
    await expectStored({ ...shop, is_deleted: false, is_public: null });
    expect((await api.batch('shops', [{ ...shop, is_public: false }])).counts.updated).toBe(1);
  });

  it('6: null in an optional field is the same as omitting it', async () => {
    const shop = newShop();
    const nulls = { ...shop, is_public: null, created: null, updated: null, is_deleted: null };
    expect((await api.batch('shops', [nulls])).counts.created).toBe(1);
    await expectStored(shop);
  });

  it.each([
    ['6: null', null],
    ['7: nothing', undefined],
    ['7: an empty string', ''],
  ])('%s in a required field is a missing field', async (_what, value) => {
    for (const field of ['shop_id', 'name', 'region']) {
      const done = await api.batch('shops', [newShop({ [field]: value })]);
      expect(done).toMatchObject({ http: 400, errors: [{ index: 0, field, code: 'required' }] });
    }
  });
});

describe('unknown fields', () => {
  it('8: are ignored and listed, each with its count', async () => {
    const [first, last] = [newShop(), newShop()];
    const sent = [{ ...first, is_publik: true, colour: 'crimson' }, newShop(), { ...last, is_publik: false }];
    const done = await api.batch('shops', sent);
    expect(done).toMatchObject({ http: 200, status: 'success', counts: { created: 3 } });
    expect(done.warnings).toMatchObject([
      { field: 'is_publik', count: 2 },
      { field: 'colour', count: 1 },
    ]);
    expect(JSON.stringify(done)).not.toContain('crimson');
    await expectStored(first);
  });

  it('8: nothing unknown, no warning', async () => {
    expect((await api.batch('shops', [newShop()])).warnings).toEqual([]);
  });

  it('8: at most 20 names are listed, and that there were more', async () => {
    const unknown = Object.fromEntries([...Array(25).keys()].map((at) => [`extra_${at}`, at]));
    const { warnings } = await api.batch('shops', [newShop(unknown), newShop(unknown)]);
    const named = warnings.filter(({ field }: { field: string | null }) => field !== null);
    expect(named).toHaveLength(20);
    expect(named.every(({ count }: { count: number }) => count === 2)).toBe(true);
    expect(warnings).toHaveLength(21);
    expect(warnings[20]).toMatchObject({ field: null, count: 10 });
  });

  it('8: names are cut at 64 characters, never through the middle of one', async () => {
    const { warnings } = await api.batch('shops', [
      newShop({ ['x'.repeat(65)]: 1, [`y${'😀'.repeat(64)}`]: 1 }),
    ]);
    const names: string[] = warnings.map(({ field }: { field: string }) => field);
    expect(names[0]).toBe('x'.repeat(64));
    expect([...names[1]!].length).toBeLessThanOrEqual(64);
    expect(names[1]!.isWellFormed()).toBe(true);
  });

  it.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', '$1'])(
    '8: the name %j is like any other',
    async (name) => {
      const body = `{"records":[${JSON.stringify(newShop()).slice(0, -1)},${JSON.stringify(name)}:{"name":"x"}}]}`;
      const answer = await sendText(body);
      expect(answer.status).toBe(200);
      expect(answer.body.batches[0].data.warnings).toMatchObject([{ field: name, count: 1 }]);
    },
  );

  it('8: a prototype cannot be set by fields', async () => {
    const record = `{"shop_id":"${randomUUID()}","region":"GB","__proto__":{"name":"Inherited"}}`;
    const { body } = await sendText(`{"records":[${record}]}`);
    expect(body.batches[0].data.errors).toMatchObject([{ field: 'name', code: 'required' }]);
  });

  it('8: a member next to records is listed too', async () => {
    const { status, body } = await api.post('/v1/data/shops', {
      record: [],
      records: [newShop()],
      dry_run: true,
    });
    expect(status).toBe(200);
    expect(body.batches[0].data.warnings).toMatchObject([
      { field: 'record', count: 1 },
      { field: 'dry_run', count: 1 },
    ]);
  });

  it('8: each batch lists its own', async () => {
    const shops = Array.from({ length: 1_001 }, (_, at) => newShop(at === 1_000 ? { colour: 'red' } : {}));
    const { body } = await api.upload('shops', shops);
    expect(body.batches[0].data.warnings).toEqual([]);
    expect(body.batches[1].data.warnings).toMatchObject([{ field: 'colour', count: 1 }]);
  });

  function sendText(body: string): Promise<Answer> {
    const headers = { 'content-type': 'application/json' };
    return api.send('/v1/data/shops', { method: 'POST', headers, body });
  }
});

describe('types', () => {
  const wrong: Record<string, unknown[]> = {
    transaction_id: [1, true, {}, []],
    region: [44, ['GB'], { code: 'GB' }],
    savings: ['2.5', true, [], {}, ''],
    amount: ['10', false, [1]],
    source: [1, false, ['online']],
    discount_value: ['1', true],
    created: [1_767_225_600, true],
    is_deleted: [0, 1, 'true', 'false', '', [], {}],
  };
  const cases = Object.entries(wrong).flatMap(([field, values]) => values.map((value) => ({ field, value })));

  it.each(cases)('9: $field is not accepted as $value', async ({ field, value }) => {
    const shop = newShop();
    await api.batch('shops', [shop]);
    const transaction = {
      transaction_id: randomUUID(),
      shop_id: shop.shop_id,
      region: 'GB',
      savings: 0,
      amount: 1,
    };
    const { http, errors } = await api.batch('transactions', [{ ...transaction, [field]: value }]);
    expect(http).toBe(400);
    const code = value === '' && field !== 'is_deleted' ? 'required' : 'wrong_type';
    expect(errors).toMatchObject([{ index: 0, field, code }]);
  });
});
