import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { readConfig } from '../../src/config.ts';
import type { ErasureMode } from '../../src/erasure/find-erasures.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { limits } from '../../src/limits.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { firstUuid } from '../../src/registry/uuid-v7.ts';
import { eraseFromReport } from '../../src/reports/erase-from-report.ts';
import { keepStep } from '../../src/reports/keep-report.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { sweepStep } from '../support/jobs.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

/** Tests how people are erased from the data behind the report while the report counts. */

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

/** Creates an organisation with two students, each with touches, a discount code and a transaction that is credited. */
async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const headers = { authorization: `Bearer ${key}` };
  const post = async (url: string, payload: object) => {
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
  };
  const upload = (type: string, ...records: object[]) => post(`/v1/data/${type}`, { records });
  const [student, other] = [randomUUID(), randomUUID()];
  await upload('shops', shop);
  await upload(
    'customers',
    ...[student, other].map((customer_id) => ({ customer_id, user_id: randomUUID(), region: 'GB' })),
  );
  const interact = (student_id: string, event_timestamp: string, more: object = {}) =>
    post('/user-interactions', {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      country: 'GB',
      student_id,
      event_timestamp,
      ...more,
    });
  const recommended = { source: 'SERVICE', recommendation_id: randomUUID() };
  const buy = (student_id: string, created: string) =>
    upload('transactions', newTransaction(shop.shop_id, { student_id, created, is_deleted: false }));
  const visit = async (student_id: string, day: string) => {
    await interact(student_id, `${day}T11:00:00Z`, recommended);
    await interact(student_id, `${day}T11:10:00Z`);
    await interact(student_id, `${day}T11:20:00Z`, { interaction_type: 'DISCOUNT_CODE' });
    await buy(student_id, `${day}T12:00:00Z`);
  };
  await visit(student, '2026-03-10');
  await visit(other, '2026-03-10');
  return { organisationId, student, other, visit };
}

/** Counts everything that is in the log. */
async function count(organisationId: string): Promise<void> {
  await numberForAll(serving);
  while (await keepStep(serving, organisationId));
}

const sumsOf = async (organisationId: string) =>
  (
    await test.pool.query('select * from report_sums where organisation_id = $1 order by 1, 2, 3, 4, 5', [
      organisationId,
    ])
  ).rows;

async function erase(organisationId: string, mode: ErasureMode, ...customerIds: string[]) {
  const request = { organisationId, keyId: 'key', mode, customerIds, userIds: [] };
  return requestErasure(serving, request, await suppressions.hasherFor(serving, organisationId));
}

const stateOf = async (organisationId: string) =>
  (await test.pool.query('select state, step from erasures where organisation_id = $1', [organisationId]))
    .rows[0];

/** Completes the sweep, and calls back after each part. */
async function sweep(organisationId: string, afterPart: () => Promise<void> = async () => {}): Promise<void> {
  await untilPasses(async () => {
    while (await sweepStep(serving, organisationId, suppressions)) await afterPart();
    expect(await stateOf(organisationId)).toMatchObject({ state: 'swept' });
  });
}

/** Sweeps until all transactions have ended that may not know of the erasure. */
const passFences = (organisationId: string) =>
  untilPasses(async () => {
    await sweepStep(serving, organisationId, suppressions);
    expect((await stateOf(organisationId)).step).not.toMatch(/fence|collect/);
  }, 5);

/** Expects that only the documented rest of the change log contains the person. */
async function expectErased(student: string): Promise<void> {
  const { changes, ...others } = await tablesWith(test.pool, [student]);
  expect(others).toEqual({});
}

it.each(['anonymise', 'delete'] as const)(
  'with %s, the figures stay and nobody comes back, if the report counts after each part of the sweep',
  async (mode) => {
    const { organisationId, student } = await newOrganisation();
    await count(organisationId);
    const before = await sumsOf(organisationId);
    expect(before.length).toBeGreaterThan(0);
    expect(Object.keys(await tablesWith(test.pool, [student]))).toEqual(
      expect.arrayContaining(['report_interactions', 'report_transactions', 'report_visits']),
    );
    await erase(organisationId, mode, student);
    await sweep(organisationId, () => count(organisationId));
    await count(organisationId);
    await expectErased(student);
    expect(await sumsOf(organisationId)).toEqual(before);
  },
);

it('with delete, the figures stay if the report counts after the sweep', async () => {
  const { organisationId, student } = await newOrganisation();
  await count(organisationId);
  const before = await sumsOf(organisationId);
  await erase(organisationId, 'delete', student);
  await sweep(organisationId);
  await count(organisationId);
  await expectErased(student);
  expect(await sumsOf(organisationId)).toEqual(before);
});

it('what was not counted before an erasure is counted once and without the person', async () => {
  const { organisationId, student, other, visit } = await newOrganisation();
  await count(organisationId);
  const day = '2026-03-20';
  await visit(student, day);
  await visit(other, day);
  await erase(organisationId, 'anonymise', student);
  await sweep(organisationId, () => count(organisationId));
  await count(organisationId);
  await expectErased(student);
  const { rows } = await test.pool.query(
    `select basis, sum(touches)::int as touches, sum(students)::int as students, sum(codes_7d)::int as codes,
       sum(transactions_7d)::int as transactions
     from report_sums where organisation_id = $1 and dimension = 'all' and day = $2 group by basis order by basis`,
    [organisationId, day],
  );
  expect(rows).toEqual([
    { basis: 'browsing', touches: 4, students: 1, codes: 1, transactions: 0 },
    { basis: 'recommendation', touches: 2, students: 1, codes: 1, transactions: 1 },
    { basis: 'transactions', touches: 0, students: 0, codes: 0, transactions: 2 },
  ]);
});

it('rows that were counted twice, with and without the student, become one', async () => {
  const { organisationId, student } = await newOrganisation();
  await count(organisationId);
  await test.pool.query(
    `insert into report_interactions
     select organisation_id, '${firstUuid}', item_id, basis, event_time, interaction_id, item_type, is_code, platform, null,
       recommendation_id, step
     from report_interactions where organisation_id = $1 and student_id = $2`,
    [organisationId, student],
  );
  const hasMore = await inTransaction(serving, (client) =>
    eraseFromReport(client, organisationId, [student]),
  );
  expect(hasMore).toBe(false);
  const { rows } = await test.pool.query(
    `select interaction_id from report_interactions
     where organisation_id = $1 and student_id = '${firstUuid}' and country is null`,
    [organisationId],
  );
  expect(rows).toHaveLength(3);
  expect(Object.keys(await tablesWith(test.pool, [student])).filter((one) => /^report/.test(one))).toEqual(
    [],
  );
});

it('one student with many rows is erased in bounded parts', async () => {
  const { organisationId, student, other } = await newOrganisation();
  await count(organisationId);
  const planted = 8_000;
  const serial = `generate_series(1, ${planted}) as g`;
  await test.pool.query(
    `insert into report_interactions (organisation_id, student_id, item_id, basis, event_time, interaction_id, item_type,
       is_code, step)
     select $1, $2, $3, 'browsing', '2026-03-01'::timestamptz + make_interval(secs => g), gen_random_uuid(), 'SHOP', false, 0
     from ${serial}`,
    [organisationId, student, shop.shop_id],
  );
  await test.pool.query(
    `insert into report_visits (organisation_id, subject_id, is_recommendation, basis, day, item_type, platform, country, step)
     select $1, $2, false, 'browsing', '2026-03-01', 'SHOP', '-', '=' || g, 0 from ${serial}`,
    [organisationId, student],
  );
  await test.pool.query(
    `insert into report_transactions (organisation_id, transaction_id, created, student_id, shop_id, amount, savings)
     select $1, gen_random_uuid(), '2026-03-01', $2, $3, 1, 0 from ${serial}`,
    [organisationId, student, shop.shop_id],
  );
  // Autovacuum does this within a minute. The statistics of the previous tests hide that an organisation has many rows.
  await test.pool.query('analyze report_interactions, report_visits, report_transactions');
  const rowsOf = async (id: string) => {
    const { rows } = await test.pool.query<{ count: number }>(
      `select (select count(*) from report_interactions where organisation_id = $1 and student_id = $2)
         + (select count(*) from report_visits where organisation_id = $1 and subject_id = $2)
         + (select count(*) from report_transactions where organisation_id = $1 and student_id = $2) as count`,
      [organisationId, id],
    );
    return Number(rows[0]?.count);
  };
  const counts = [await rowsOf(student)];
  const ofOther = await rowsOf(other);
  await erase(organisationId, 'anonymise', student, ...many(2_500, () => randomUUID()));
  await sweep(organisationId, async () => {
    if (counts.at(-1) !== 0) counts.push(await rowsOf(student));
  });
  expect(counts.at(-1)).toBe(0);
  const perPart = counts.slice(1).map((left, at) => (counts[at] as number) - left);
  expect(Math.max(...perPart)).toBeLessThanOrEqual(limits.erasureRowsPerStep);
  expect(await rowsOf(other)).toBe(ofOther);
  await expectErased(student);
});

it('a first step of the report that began before the erasure from it writes nobody back', async () => {
  const { organisationId, student, other } = await newOrganisation();
  await numberForAll(serving);
  await erase(organisationId, 'anonymise', student);
  await passFences(organisationId);
  const blocker = await test.pool.connect();
  await blocker.query('begin; lock table report_sums');
  const step = keepStep(serving, organisationId);
  await untilPasses(async () => {
    const { rows } = await blocker.query(
      `select from pg_locks where relation = 'report_sums'::regclass and not granted`,
    );
    expect(rows).toHaveLength(1);
  });
  // The step has written its rows and holds the lock, so the sweep waits for it.
  const swept = sweep(organisationId);
  await Promise.race([swept, untilPasses(async () => expect(await isWaiting()).toBe(true))]);
  await blocker.query('commit');
  blocker.release();
  await Promise.all([step, swept]);
  await count(organisationId);
  await expectErased(student);
  expect(Object.keys(await tablesWith(test.pool, [other]))).toContain('report_interactions');
});

/** Whether a transaction waits for another one's row. */
async function isWaiting(): Promise<boolean> {
  const { rows } = await test.pool.query(
    `select from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype in ('transactionid', 'tuple') and not l.granted and a.datname = current_database()`,
  );
  return rows.length > 0;
}

it.each([true, false])(
  'a report step that waits for the erasure begins again with a new snapshot (counted before: %s)',
  async (isCounted) => {
    const { organisationId, student, other, visit } = await newOrganisation();
    if (isCounted) await count(organisationId);
    await visit(student, '2026-03-20');
    await visit(other, '2026-03-20');
    await numberForAll(serving);
    let step: Promise<boolean> | undefined;
    await inTransaction(serving, async (client) => {
      await client.query(
        `insert into erasure_ids (organisation_id, erasure_id, id) values ($1, gen_random_uuid(), $2)`,
        [organisationId, student],
      );
      expect(await eraseFromReport(client, organisationId, [student])).toBe(false);
      // In this step's snapshot, the person is not being erased.
      step = keepStep(serving, organisationId);
      await untilPasses(async () => expect(await isWaiting()).toBe(true));
    });
    expect(await step).toBe(true);
    await count(organisationId);
    const reportTables = async (id: string) =>
      Object.keys(await tablesWith(test.pool, [id])).filter((name) => name.startsWith('report'));
    expect(await reportTables(student)).toEqual([]);
    expect((await reportTables(other)).toSorted()).toEqual([
      'report_interactions',
      'report_transactions',
      'report_visits',
    ]);
  },
);
