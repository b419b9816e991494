// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestApp, type TestApp } from '../support/app.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { untilPasses } from '../support/until-passes.ts';

/** With `mode=merge`, a field that is left out keeps its stored value, and null clears it. */

let test: TestApp;
let admin: pg.Client;
beforeAll(async () => {
  test = await createTestApp();
  admin = new pg.Client({ connectionString: test.databaseUrl });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await test.close();
});

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const call = async (method: 'GET' | 'POST', url: string, payload?: object, idempotencyKey?: string) => {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    };
    const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, body: answer.json() };
  };
  const replace = async (type: string, ...records: object[]) => {
    const { body } = await call('POST', `/v1/data/${type}`, { records });
    return body.batches[0].data;
  };
  const merge = async (type: string, ...records: object[]) => {
    const { body } = await call('POST', `/v1/data/${type}?mode=merge`, { records });
    return body.batches[0].data;
  };
  const shopWith = async (id: string) => (await call('GET', `/v1/data/shops/${id}`)).body;
  const rejections = async () => (await call('GET', '/v1/rejections')).body.rejections;
  return { organisationId, key, call, replace, merge, shopWith, rejections };
}

const errorsIn = (data: { errors: { field: string; code: string }[] }) =>
  data.errors.map(({ field, code }) => [field, code]);

it('keeps what is left out, and clears what is null', async () => {
  const { replace, merge, shopWith } = await newOrganisation();
  const shop = { ...newShop(), is_public: true, updated: '2026-03-14T09:26:53Z' };
  await replace('shops', shop);
  const id = shop.shop_id;
  expect(await merge('shops', { shop_id: id, is_deleted: true })).toMatchObject({ counts: { updated: 1 } });
  const stored = { ...shop, updated: '2026-03-14T09:26:53Z', is_deleted: true };
  expect(await shopWith(id)).toMatchObject(stored);
  expect(await merge('shops', { shop_id: id, is_deleted: true })).toMatchObject({ counts: { unchanged: 1 } });
  await merge('shops', { shop_id: id, is_public: null, is_deleted: null });
  expect(await shopWith(id)).toMatchObject({ ...stored, is_public: null, is_deleted: false });
  expect(await merge('shops', { shop_id: id, name: 'Older', updated: '2026-03-13T00:00:00Z' })).toMatchObject(
    {
      counts: { stale: 1 },
    },
  );
  expect(await shopWith(id)).toMatchObject({ name: shop.name });
});

it('requires the required fields only of a record that is not stored, and never stores null in them', async () => {
  const { replace, merge, call } = await newOrganisation();
  const shop = newShop();
  await replace('shops', shop);
  expect(errorsIn(await merge('shops', { shop_id: shop.shop_id, name: null }))).toEqual([
    ['name', 'required'],
  ]);
  const unknown = randomUUID();
  expect(errorsIn(await merge('shops', { shop_id: unknown, is_public: true }))).toEqual([
    ['name', 'required'],
    ['region', 'required'],
  ]);
  expect((await call('GET', `/v1/data/shops/${unknown}`)).status).toBe(404);
  expect(errorsIn(await merge('shops', { name: 'Bakery', region: 'GB' }))).toEqual([['shop_id', 'required']]);
  expect(await merge('shops', { shop_id: unknown, name: 'Bakery', region: 'GB' })).toMatchObject({
    counts: { created: 1 },
  });
});

it('concurrent merges of different fields lose nothing', async () => {
  const { replace, merge, shopWith } = await newOrganisation();
  const shop = { ...newShop(), is_public: false };
  await replace('shops', shop);
  const id = shop.shop_id;
  await admin.query('begin');
  await admin.query('select from shops where shop_id = $1 for update', [id]);
  const merging = [
    merge('shops', { shop_id: id, name: 'Tea House' }),
    merge('shops', { shop_id: id, is_public: true }, { shop_id: id, region: 'FR' }),
  ];
  await untilWaiting(2);
  await admin.query('commit');
  for (const { counts } of await Promise.all(merging)) expect(counts.failed).toBe(0);
  expect(await shopWith(id)).toMatchObject({ name: 'Tea House', is_public: true, region: 'FR' });
});

it('a record that vanishes meanwhile is not brought back', async () => {
  const { organisationId, replace, merge, call } = await newOrganisation();
  const shop = newShop();
  await replace('shops', shop);
  await admin.query('begin');
  const remove = 'delete from shops where organisation_id = $1 and shop_id = $2';
  await admin.query(remove, [organisationId, shop.shop_id]);
  const merging = merge('shops', { shop_id: shop.shop_id, name: 'Tea House' });
  await untilWaiting(1);
  await admin.query('commit');
  expect(errorsIn(await merging)).toEqual([['region', 'required']]);
  expect((await call('GET', `/v1/data/shops/${shop.shop_id}`)).status).toBe(404);
});

/** Waits until this many sessions wait for the row that `admin` has locked. */
function untilWaiting(count: number) {
  return untilPasses(async () => {
    const { rows } = await test.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    expect(rows).toHaveLength(count);
  });
}

it('a rejected merge is kept with its fields, and the next one is added to it', async () => {
  const { replace, merge, rejections, call, shopWith } = await newOrganisation();
  const shop = { ...newShop(), is_public: true };
  await replace('shops', shop);
  const id = shop.shop_id;
  await merge('shops', { shop_id: id, is_public: null, name: 5 });
  expect(await rejections()).toMatchObject([
    { mode: 'merge', record: { shop_id: id, is_public: null, name: 5 } },
  ]);
  await merge('shops', { shop_id: id, name: 'Tea House', region: 'nowhere' });
  const [both] = await rejections();
  expect(both.record).toEqual({ shop_id: id, is_public: null, name: 'Tea House', region: 'nowhere' });
  expect(errorsIn(both)).toEqual([['region', 'invalid_format']]);
  // What is stored is taken out of it.
  await merge('shops', { shop_id: id, region: 'FR' });
  const [left, ...others] = await rejections();
  expect(others).toEqual([]);
  expect(left).toEqual({
    ...both,
    rejection_id: left.rejection_id,
    record: { shop_id: id, is_public: null, name: 'Tea House' },
  });
  await merge('shops', { shop_id: id, name: 'Tea Shop' });
  expect(await rejections()).toMatchObject([{ record: { shop_id: id, is_public: null } }]);
  await merge('shops', { shop_id: id, is_public: false });
  expect(await rejections()).toEqual([]);
  // In one batch, too.
  await merge('shops', { shop_id: id, name: 5 }, { shop_id: id, region: 5 }, { shop_id: id, region: 'DE' });
  expect((await rejections()).map(({ record }: { record: object }) => record)).toEqual([
    { shop_id: id, name: 5 },
  ]);
  await merge('shops', { shop_id: id, name: 5 }, { shop_id: id, region: 'DE', name: 'Tea House' });
  expect(await rejections()).toEqual([]);
  expect(await shopWith(id)).toMatchObject({ name: 'Tea House', region: 'DE', is_public: false });
  expect((await call('GET', '/v1/rejections/summary')).body.rejections).toEqual([]);
});

it('a rejected merge is kept as it was sent, with repeated fields, and a newest one that is too large with others alone', async () => {
  const { organisationId, key, merge, rejections } = await newOrganisation();
  const { shop_id } = newShop();
  const send = async (record: string) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const payload = `{"records":[${record}]}`;
    return test.app.inject({ method: 'POST', url: '/v1/data/shops?mode=merge', headers, payload });
  };
  await send(`{"shop_id":"${shop_id}","name":"A","name":"B"}`);
  const keptText = async () => {
    const { rows } = await admin.query(
      'select record::text as text from rejections where organisation_id = $1',
      [organisationId],
    );
    return rows.map(({ text }) => text);
  };
  expect(await keptText()).toEqual([`{"shop_id":"${shop_id}","name":"A","name":"B"}`]);
  await merge('shops', { shop_id, region: 7 });
  expect((await keptText())[0]).toContain('"name":"A","name":"B"');
  expect(await rejections()).toMatchObject([{ record: { region: 7 } }]);
  const large = 'x'.repeat(40_000);
  await merge('shops', { shop_id, name: 8, created: large });
  await merge('shops', { shop_id, region: large });
  expect(Buffer.byteLength((await keptText()).join(''))).toBeLessThan(64 * 1024);
  expect(Object.keys((await rejections())[0].record)).toEqual(['shop_id', 'region']);
  // What it clears is kept too.
  const newest = { transaction_id: randomUUID(), shop_id: randomUUID(), source: null };
  await merge('transactions', { ...newest, amount: 'x'.repeat(65_000) });
  await merge('transactions', { ...newest, discount_name: 'x'.repeat(500) });
  expect((await rejections()).at(-1).record).toEqual({ ...newest, discount_name: 'x'.repeat(500) });
});

it('a replay merges what was to be merged and replaces the rest', async () => {
  const { replace, merge, rejections, call, shopWith } = await newOrganisation();
  const [shop, other] = [{ ...newShop(), is_public: true }, newShop()];
  await replace('shops', shop);
  const transaction = newTransaction(other.shop_id);
  await replace('transactions', transaction);
  const own = newTransaction(shop.shop_id);
  await replace('transactions', own);
  await merge(
    'transactions',
    { transaction_id: own.transaction_id, shop_id: other.shop_id, source: null },
    { transaction_id: randomUUID(), source: 'online' },
  );
  expect(
    (await rejections()).map(({ mode, record }: { mode: string; record: object }) => [mode, record]),
  ).toEqual([
    ['replace', expect.objectContaining({ transaction_id: transaction.transaction_id })],
    ['merge', { transaction_id: own.transaction_id, shop_id: other.shop_id, source: null }],
    ['merge', { transaction_id: expect.any(String), source: 'online' }],
  ]);
  await replace('shops', other);
  const { body } = await call('POST', '/v1/rejections/replay');
  expect(body.remaining).toBe(1);
  const { body: stored } = await call('GET', `/v1/data/transactions/${own.transaction_id}`);
  expect(stored).toMatchObject({ shop_id: other.shop_id, amount: own.amount, source: null });
  expect(await shopWith(shop.shop_id)).toMatchObject({ is_public: true });
});

it('a replay never writes over a field that was stored later', async () => {
  const { replace, merge, rejections, call } = await newOrganisation();
  const [shop, later] = [newShop(), newShop()];
  await replace('shops', shop);
  const stored = { ...newTransaction(shop.shop_id), amount: 1, source: 'old', discount_name: 'Old' };
  const [merged, replaced] = [stored, { ...stored, transaction_id: randomUUID() }];
  await replace('transactions', merged, replaced);
  const change = { shop_id: later.shop_id, amount: 2, source: 'rejected' };
  await merge('transactions', { transaction_id: merged.transaction_id, ...change });
  const { discount_name: _, ...whole } = { ...replaced, ...change };
  await replace('transactions', whole);
  const before = await rejections();
  for (const { transaction_id } of [merged, replaced]) {
    await merge('transactions', { transaction_id, amount: 3 });
    await merge('transactions', { transaction_id, amount: 3 });
  }
  expect(await rejections()).toMatchObject(
    before.map(({ request_id, rejected, errors }: Record<string, unknown>) => ({
      request_id,
      rejected,
      errors,
    })),
  );
  await replace('shops', later);
  expect((await call('POST', '/v1/rejections/replay')).body.remaining).toBe(0);
  const transactionWith = async (id: string) => (await call('GET', `/v1/data/transactions/${id}`)).body;
  const expected = { shop_id: later.shop_id, amount: 3, source: 'rejected' };
  expect(await transactionWith(merged.transaction_id)).toMatchObject({
    ...expected,
    discount_name: 'Old',
  });
  // In the order sent, the record that replaces the stored one clears what it lacks, before the merge.
  expect(await transactionWith(replaced.transaction_id)).toMatchObject({
    ...expected,
    discount_name: null,
  });
  expect((await call('GET', '/v1/rejections/summary')).body.rejections).toEqual([]);
});

it.each(['replace', 'merge'])(
  'a rejection that merges were added to (mode=%s) keeps its time',
  async (mode) => {
    const { replace, merge, rejections, call, shopWith } = await newOrganisation();
    const shop = newShop();
    await replace('shops', shop);
    const id = shop.shop_id;
    const [first, second, third] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'];
    const record = { ...shop, region: 5, updated: second };
    await call('POST', `/v1/data/shops?mode=${mode}`, { records: [record] });
    await merge('shops', { shop_id: id, name: 5 });
    // An older version is stored, and another one fails, but the rejection is newer.
    await replace('shops', { ...shop, name: 'Older', updated: first });
    await merge(
      'shops',
      { shop_id: id, region: 'FR', updated: first },
      { shop_id: id, is_public: 5, updated: first },
    );
    expect(await rejections()).toMatchObject([
      { mode, record: { ...shop, name: 5, region: 5, updated: second } },
    ]);
    expect(await shopWith(id)).toMatchObject({ name: 'Older', region: 'FR' });
    await merge('shops', { shop_id: id, name: 'Newer', updated: third });
    await merge('shops', { shop_id: id, region: 5, updated: second });
    expect(await rejections()).toMatchObject([{ errors: [{ field: 'name' }], record: { region: 5 } }]);
  },
);

it('a retry must have the same mode, and leave out the same fields', async () => {
  const { call } = await newOrganisation();
  const shop = newShop();
  const records = [shop];
  const send = (mode: string, payload: object) => call('POST', `/v1/data/shops?mode=${mode}`, payload, 'key');
  expect((await send('merge', { records })).status).toBe(200);
  expect((await send('merge', { records })).status).toBe(200);
  expect((await send('replace', { records })).body.code).toBe('idempotency_key_reused');
  const cleared = [{ ...shop, is_public: null }];
  expect((await send('merge', { records: cleared })).body.code).toBe('idempotency_key_reused');
  const { body } = await call('GET', '/v1/requests');
  expect(body.requests).toMatchObject([{ mode: 'merge', counts: { created: 1 } }]);
  const failing = [{ shop_id: shop.shop_id, name: 5 }];
  await call('POST', '/v1/data/shops?mode=merge', { records: failing }, 'other');
  const again = [{ shop_id: shop.shop_id, name: 5, region: null }];
  expect((await call('POST', '/v1/data/shops?mode=merge', { records: again }, 'other')).body.code).toBe(
    'idempotency_key_reused',
  );
});

it('a dry run counts the stored values that would be lost', async () => {
  const { replace, call } = await newOrganisation();
  const shops = Array.from({ length: 3 }, () => ({
    ...newShop(),
    is_public: true,
    created: '2026-03-14T09:26:53Z',
  }));
  await replace('shops', ...shops);
  const rehearse = async (records: object[], mode: string) =>
    (await call('POST', `/v1/data/shops?dry_run=true&mode=${mode}`, { records })).body.cleared;
  const without = shops.map(({ is_public, ...rest }) => rest);
  expect(await rehearse(without, 'replace')).toEqual({ is_public: 3 });
  expect(await rehearse([...without.slice(1), newShop()], 'replace')).toEqual({ is_public: 2 });
  expect(await rehearse(without, 'merge')).toEqual({});
  await replace('shops', ...shops.slice(0, 2).map((shop) => ({ ...shop, is_deleted: true })));
  expect(await rehearse(shops, 'replace')).toEqual({ is_deleted: 2 });
  expect(await rehearse(shops, 'merge')).toEqual({});
  expect(await rehearse([{ shop_id: shops[0]?.shop_id, created: null }], 'merge')).toEqual({ created: 1 });
});

it('a dry run counts what a record would clear once its missing reference is stored', async () => {
  const { replace, call } = await newOrganisation();
  const shop = newShop();
  await replace('shops', shop);
  const transaction = { ...newTransaction(shop.shop_id), updated: '2026-03-14T00:00:00Z' };
  await replace('transactions', { ...transaction, source: 'online' });
  const moved = { ...transaction, shop_id: randomUUID() };
  const rehearse = async (...records: object[]) =>
    (await call('POST', '/v1/data/transactions?dry_run=true', { records })).body.cleared;
  expect(await rehearse(moved)).toEqual({ source: 1 });
  // A record that fails for another reason, is not stored yet or is stale would clear nothing.
  const older = { ...moved, updated: '2026-03-13T00:00:00Z' };
  expect(await rehearse({ ...moved, amount: 'much' }, newTransaction(randomUUID()), older)).toEqual({});
});

it('interactions cannot be merged', async () => {
  const { call } = await newOrganisation();
  const { status, body } = await call('POST', '/user-interactions/batch?mode=merge', { records: [{}] });
  expect(status).toBe(400);
  expect(body.details).toMatchObject([{ field: 'mode' }]);
});
