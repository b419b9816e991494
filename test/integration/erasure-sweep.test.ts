// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { finishErasures } from '../../src/erasure/finish-erasures.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { sweepErasures, sweepStep } from '../../src/erasure/sweep/sweep.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { IdFilter } from '../../src/suppression/id-filter.ts';
import { IdHasher } from '../../src/suppression/suppression-key.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { countReport } from '../support/report-organisation.ts';
import { tablesWith } from '../support/tables-with.ts';

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
const suppressions = new Suppressions([erasureKey]);
const shop = newShop();
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const headers = { authorization: `Bearer ${key}` };
  const post = async (url: string, payload: object) => {
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
    return answer.json();
  };
  const upload = (type: string, ...records: object[]) => post(`/v1/data/${type}`, { records });
  await upload('shops', shop);
  return { organisationId, post, upload };
}

const newCustomer = (user_id = randomUUID()) => ({ customer_id: randomUUID(), user_id, region: 'GB' });

function erase(organisationId: string, ...customerIds: string[]) {
  const request = { organisationId, keyId: 'key', mode: 'anonymise' as const, customerIds, userIds: [] };
  return requestErasure(serving, request, suppressions.hasherFor(organisationId));
}

/** Sweeps as far as currently possible. */
async function sweepNow(organisationId: string): Promise<void> {
  while (await sweepStep(serving, organisationId, suppressions));
}

/** Completes the sweep, and waits for running transactions such as the app's own maintenance. */
const sweep = (organisationId: string) =>
  vi.waitFor(
    async () => {
      await sweepNow(organisationId);
      expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
    },
    { timeout: 30_000 },
  );

const stateOf = async (organisationId: string) =>
  (await test.pool.query('select state, step from erasures where organisation_id = $1', [organisationId]))
    .rows[0];

it('a sweep waits for transactions that may have missed the suppression', async () => {
  const { organisationId, upload } = await newOrganisation();
  const customer = newCustomer();
  await upload('customers', customer);
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  // The upload has compared its records with the suppressions, but has not written yet.
  await late.query('begin');
  await late.query('select suppressions_version from tenants where organisation_id = $1', [organisationId]);
  await erase(organisationId, customer.customer_id);
  await sweepNow(organisationId);
  expect(await stateOf(organisationId)).toEqual({ state: 'running', step: 'fence' });
  await late.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
     values ($1, gen_random_uuid(), $2, 'GB', 1, 1, $3, false)`,
    [organisationId, shop.shop_id, customer.customer_id],
  );
  await late.query('commit');
  await late.end();
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [customer.customer_id]);
  expect([others, changes]).toEqual([{}, 1]);
});

it('two concurrent sweeps erase everything once', async () => {
  const { organisationId, upload } = await newOrganisation();
  const customers = many(30, () => newCustomer());
  await upload('customers', ...customers);
  await upload(
    'transactions',
    ...customers.map(({ customer_id }) => newTransaction(shop.shop_id, { student_id: customer_id })),
  );
  await erase(organisationId, ...customers.map(({ customer_id }) => customer_id));
  await Promise.all(many(4, () => sweepNow(organisationId)));
  await sweep(organisationId);
  const { rows } = await test.pool.query('select state, rows from erasures where organisation_id = $1', [
    organisationId,
  ]);
  expect(rows).toMatchObject([{ state: 'swept', rows: { customers: 30, transactions: 30 } }]);
});

it('customers with the same user are one person', async () => {
  const { organisationId, upload, post } = await newOrganisation();
  const user_id = randomUUID();
  const [one, other] = [newCustomer(user_id), newCustomer(user_id)];
  const stranger = newCustomer();
  await upload('customers', one, other, stranger);
  const buys = [one, other, stranger].map(({ customer_id }) =>
    newTransaction(shop.shop_id, { student_id: customer_id }),
  );
  await upload('transactions', ...buys);
  const visit = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  };
  await post('/user-interactions', { ...visit, user_id: user_id.toUpperCase() });
  await erase(organisationId, one.customer_id);
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [user_id, one.customer_id, other.customer_id]);
  // Both records were stored and removed together, so a single change mentions them.
  expect([others, changes]).toEqual([{}, 1]);
  expect(Object.keys(await tablesWith(test.pool, [stranger.customer_id]))).toContain('transactions');
});

it('the data behind the report loses its people, and its figures stay', async () => {
  const { organisationId, upload, post } = await newOrganisation();
  const customer = newCustomer();
  const student_id = customer.customer_id;
  await upload('customers', customer);
  const touch = {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    source: 'SERVICE',
  };
  const times = { event_timestamp: '2026-03-10T11:00:00Z', recommendation_id: randomUUID() };
  await post('/user-interactions', { ...touch, ...times, student_id });
  await upload('transactions', newTransaction(shop.shop_id, { student_id, created: '2026-03-10T12:00:00Z' }));
  await countReport(test, organisationId);
  const sums = async () =>
    (
      await test.pool.query('select * from report_sums where organisation_id = $1 order by 1, 2, 3, 4, 5', [
        organisationId,
      ])
    ).rows;
  const before = await sums();
  expect(before.length).toBeGreaterThan(0);
  expect(Object.keys(await tablesWith(test.pool, [student_id]))).toEqual(
    expect.arrayContaining(['report_interactions', 'report_transactions', 'report_visits']),
  );
  await erase(organisationId, student_id);
  await sweep(organisationId);
  await countReport(test, organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [student_id]);
  expect([others, changes]).toEqual([{}, 1]);
  expect(await sums()).toEqual(before);
});

it('an erasure is done when the day of its last entries has been dropped', async () => {
  const { organisationId } = await newOrganisation();
  await erase(organisationId, randomUUID());
  await vi.waitFor(
    async () => {
      await sweepErasures(serving, suppressions);
      expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
    },
    { timeout: 30_000 },
  );
  await finishErasures(serving);
  expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
  await test.pool.query(
    `update erasures set swept_at = now() - interval '30 days' where organisation_id = $1`,
    [organisationId],
  );
  await finishErasures(serving);
  expect(await stateOf(organisationId)).toMatchObject({ state: 'done' });
});

it.each([
  ['in one part', 20_000, 20],
  ['grown by parts', 0, 100],
])('a filter %s finds everything that was added, and hardly anything else', (_, reserved, wrongMax) => {
  const hasher = new IdHasher(erasureKey, randomUUID());
  const filter = new IdFilter();
  if (reserved > 0) filter.reserve(reserved);
  const added = many(20_000, () => randomUUID());
  for (const id of added) {
    hasher.hashShort(id);
    filter.add(hasher.short.low, hasher.short.high);
  }
  const has = (id: string) => {
    hasher.hashShort(id);
    return filter.has(hasher.short);
  };
  expect(added.every(has)).toBe(true);
  expect(many(100_000, () => randomUUID()).filter(has).length).toBeLessThan(wrongMax);
});
