// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { finishErasures } from '../../src/erasure/sweep/erase-people.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { IdFilter } from '../../src/suppression/id-filter.ts';
import { IdHasher } from '../../src/suppression/suppression-key.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { endRewriting, sweepErasures, sweepStep } from '../support/jobs.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { countReport } from '../support/report-organisation.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

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

async function erase(organisationId: string, ...customerIds: string[]) {
  const request = { organisationId, keyId: 'key', mode: 'anonymise' as const, customerIds, userIds: [] };
  return requestErasure(serving, request, await suppressions.hasherFor(serving, organisationId));
}

/** Sweeps as far as currently possible. */
async function sweepNow(organisationId: string): Promise<void> {
  while (await sweepStep(serving, organisationId, suppressions));
}

/** Completes the sweep, and waits for running transactions such as the app's own maintenance. */
const sweep = (organisationId: string) =>
  untilPasses(async () => {
    await sweepNow(organisationId);
    expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
  });

/** The state of an erasure, and the step of the sweep if there is one. */
const stateOf = async (organisationId: string) =>
  (
    await test.pool.query(
      `select e.state, j.step from erasures e
       left join jobs j on j.organisation_id = e.organisation_id and j.kind = 'erasures'
       where e.organisation_id = $1`,
      [organisationId],
    )
  ).rows[0];

it('a sweep waits for transactions that may have missed the suppression', async () => {
  const { organisationId, upload } = await newOrganisation();
  await endRewriting(test.pool, organisationId);
  const customer = newCustomer();
  await upload('customers', customer);
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  try {
    // The upload has compared its records with the suppressions, but has not written yet.
    await late.query('begin');
    await late.query('select suppressions_version from tenants where organisation_id = $1', [organisationId]);
    await erase(organisationId, customer.customer_id);
    await sweepNow(organisationId);
    expect(await stateOf(organisationId)).toEqual({ state: 'sweeping', step: 'fence' });
    await late.query(
      `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
       values ($1, gen_random_uuid(), $2, 'GB', 1, 1, $3, false)`,
      [organisationId, shop.shop_id, customer.customer_id],
    );
    await late.query('commit');
  } finally {
    await late.end();
  }
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [customer.customer_id]);
  expect([others, changes]).toEqual([{}, 1]);
});

it('a sweep finds a rejection that a merge has just put into a new one', async () => {
  const { organisationId, upload, post } = await newOrganisation();
  await endRewriting(test.pool, organisationId);
  const customer = newCustomer();
  await upload('customers', customer);
  const transaction = newTransaction(randomUUID(), { student_id: customer.customer_id });
  await post('/v1/data/transactions', { records: [transaction, newTransaction(shop.shop_id)] });
  await erase(organisationId, customer.customer_id);
  const merging = new pg.Client({ connectionString: test.databaseUrl });
  await merging.connect();
  try {
    while ((await stateOf(organisationId)).step !== 'rejections')
      await sweepStep(serving, organisationId, suppressions);
    await merging.query('begin');
    // A merge that fails deletes the rejection and writes one with its fields added. This has the same effect.
    await merging.query(
      `update rejections set rejection_id = 'ffffffff-ffff-7fff-8fff-ffffffffffff' where organisation_id = $1`,
      [organisationId],
    );
    const sweeping = sweepNow(organisationId);
    await untilPasses(async () => {
      const { rows } = await test.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%rejections%'`,
      );
      expect(rows).toHaveLength(1);
    });
    await merging.query('commit');
    await sweeping;
  } finally {
    await merging.end();
  }
  await sweep(organisationId);
  const { changes: _, ...others } = await tablesWith(test.pool, [customer.customer_id]);
  expect(others).toEqual({});
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

it('a sweep waits for transactions that may have missed its other ids, also if it was interrupted', async () => {
  const { organisationId, upload } = await newOrganisation();
  const user_id = randomUUID();
  const [one, other] = [newCustomer(user_id), newCustomer(user_id)];
  await upload('customers', one, other);
  await erase(organisationId, one.customer_id);
  const isAdded = async () =>
    (await test.pool.query('select from erasure_ids where id = $1', [other.customer_id])).rowCount === 1;
  // The process ends after it has added the other customer, before the step is saved.
  const interrupted = new Proxy(serving, {
    get(pool, name) {
      const value = Reflect.get(pool, name);
      if (name !== 'connect') return typeof value === 'function' ? value.bind(pool) : value;
      return async () => {
        if (await isAdded()) throw new Error('the process has ended');
        return pool.connect();
      };
    },
  });
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  try {
    await untilPasses(async () => {
      while ((await stateOf(organisationId)).step !== 'expand')
        expect(await sweepStep(serving, organisationId, suppressions)).toBe(true);
    });
    await late.query('begin');
    await late.query('select suppressions_version from tenants where organisation_id = $1', [organisationId]);
    await expect(
      (async () => {
        while (await sweepStep(interrupted, organisationId, suppressions));
      })(),
    ).rejects.toThrow('the process has ended');
    await sweepNow(organisationId);
    expect(await stateOf(organisationId)).toEqual({ state: 'sweeping', step: 'fence' });
    await late.query('commit');
  } finally {
    await late.end();
  }
  await sweep(organisationId);
});

it('a customer who gets another user before the sweep suppresses it takes that user along', async () => {
  const { organisationId, upload, post } = await newOrganisation();
  const user_id = randomUUID();
  const [one, twin] = [newCustomer(user_id), newCustomer(user_id)];
  await upload('customers', one, twin);
  const newUser = randomUUID();
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  await post('/user-interactions', { ...visit, user_id: newUser });
  await erase(organisationId, one.customer_id);
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  try {
    await untilPasses(async () => {
      while ((await stateOf(organisationId)).step !== 'expand')
        expect(await sweepStep(serving, organisationId, suppressions)).toBe(true);
    });
    // The upload has compared its records with the suppressions, which do not contain the twin yet.
    await late.query('begin');
    await late.query('select suppressions_version from tenants where organisation_id = $1', [organisationId]);
    await sweepNow(organisationId);
    expect(await stateOf(organisationId)).toEqual({ state: 'sweeping', step: 'fence' });
    await late.query('update customers set user_id = $3 where organisation_id = $1 and customer_id = $2', [
      organisationId,
      twin.customer_id,
      newUser,
    ]);
    await late.query('commit');
  } finally {
    await late.end();
  }
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [newUser, user_id, twin.customer_id]);
  expect(others).toEqual({});
});

it('customers with the same user are one person, also if one was stored during the request', async () => {
  const { organisationId, upload } = await newOrganisation();
  const user_id = randomUUID();
  // The customer that is already stored comes first in the table.
  const other = { ...newCustomer(user_id), customer_id: `00000000-0000-4000-8000-${randomUUID().slice(24)}` };
  const one = newCustomer(user_id);
  await upload('customers', other);
  await upload('transactions', newTransaction(shop.shop_id, { student_id: other.customer_id }));
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  try {
    await late.query('begin');
    await late.query(
      `insert into customers (organisation_id, customer_id, user_id, region, is_deleted) values ($1, $2, $3, 'GB', false)`,
      [organisationId, one.customer_id, user_id],
    );
    await erase(organisationId, one.customer_id);
    await late.query('commit');
  } finally {
    await late.end();
  }
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [user_id, one.customer_id, other.customer_id]);
  expect(others).toEqual({});
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
  await untilPasses(async () => {
    await sweepErasures(serving, suppressions);
    expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
  });
  const sweptBeforeOldestDay = async (interval: string) => {
    const { rows } = await test.pool.query<{ oldest: string }>(
      `select min(right(relname, 10)) as oldest from pg_class where relname ~ '^changes_[0-9]{4}_[0-9_]{5}$'`,
    );
    await test.pool.query(
      `update erasures set swept_at = to_date($2, 'YYYY_MM_DD')::timestamp at time zone 'UTC' - $3::interval
       where organisation_id = $1`,
      [organisationId, rows[0]?.oldest, interval],
    );
    await finishErasures(serving);
    return (await stateOf(organisationId)).state;
  };
  await finishErasures(serving);
  expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
  // The entries are written after the time in `swept_at`, so they may be in the partition of the next day.
  expect(await sweptBeforeOldestDay('1 second')).toBe('swept');
  expect(await sweptBeforeOldestDay('2 hours')).toBe('done');
});

it.each(['interactions', 'receipts', 'receipt_batches'])(
  'a sweep waits for old %s that are not dropped yet',
  async (table) => {
    const { organisationId } = await newOrganisation();
    await test.pool.query(`create table to_drop_${table}_2020_01_06 (like ${table})`);
    await erase(organisationId, randomUUID());
    await untilPasses(async () => {
      await sweepNow(organisationId);
      expect(await stateOf(organisationId)).toEqual({ state: 'sweeping', step: 'detached' });
    });
    await test.pool.query(`drop table to_drop_${table}_2020_01_06`);
    await sweep(organisationId);
  },
);

it('after a restore, people are identified when transactions that may have missed their suppression have ended', async () => {
  const { organisationId } = await newOrganisation();
  const customer = newCustomer();
  const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
  await late.connect();
  try {
    await late.query('begin');
    await late.query('select suppressions_version from tenants where organisation_id = $1', [organisationId]);
    // As after-restore repeats an erasure.
    await erase(organisationId, customer.customer_id);
    await test.pool.query('delete from erasure_ids where organisation_id = $1', [organisationId]);
    await test.pool.query(`update erasures set step = 'identify customers' where organisation_id = $1`, [
      organisationId,
    ]);
    await sweepNow(organisationId);
    await late.query(
      `insert into customers (organisation_id, customer_id, user_id, region, is_deleted) values ($1, $2, $3, 'GB', false)`,
      [organisationId, customer.customer_id, customer.user_id],
    );
    await late.query('commit');
  } finally {
    await late.end();
  }
  await sweep(organisationId);
  const { changes, ...others } = await tablesWith(test.pool, [customer.customer_id, customer.user_id]);
  expect(others).toEqual({});
});

it('keys wait for people whom a second restore adds while the first is identified', async () => {
  const { organisationId, upload } = await newOrganisation();
  const customers = many(2, () => newCustomer());
  await upload('customers', ...customers);
  const restored = async (at: number) => {
    await erase(organisationId, customers[at]?.customer_id ?? '');
    await test.pool.query(
      `update erasures set step = 'identify customers' where organisation_id = $1 and state = 'requested'`,
      [organisationId],
    );
  };
  const looksForPeople = async () =>
    (await test.pool.query('select bool_or(looks_for_people) as looks from restores')).rows[0].looks;
  await test.pool.query(`insert into restores (target, looks_for_people) values ('twice', true)`);
  await restored(0);
  await untilPasses(async () => {
    await sweepStep(serving, organisationId, suppressions);
    expect(await stateOf(organisationId)).toEqual({ state: 'sweeping', step: 'identify' });
  });
  await restored(1);
  const second = async () =>
    (
      await test.pool.query<{ state: string; step: string }>(
        `select state, step from erasures where organisation_id = $1 order by erasure_id desc limit 1`,
        [organisationId],
      )
    ).rows[0];
  // The first people are identified, and all their sources searched, before the second erasure joins a sweep.
  let steps = 0;
  for (; (await second())?.state === 'requested'; steps++) {
    expect([await second(), await looksForPeople()]).toEqual([
      { state: 'requested', step: 'identify customers' },
      true,
    ]);
    await untilPasses(async () => expect(await sweepStep(serving, organisationId, suppressions)).toBe(true));
  }
  expect(steps).toBeGreaterThan(5);
  await untilPasses(async () => {
    await sweepNow(organisationId);
    expect(await looksForPeople()).toBe(false);
  });
  await test.pool.query('delete from restores');
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

it('a filter does not grow if the same people are erased again', () => {
  const filter = new IdFilter();
  filter.add(1, 2);
  const { bytes } = filter;
  for (let times = 0; times < 100_000; times++) filter.add(1, 2);
  expect(filter.bytes).toBe(bytes);
});
