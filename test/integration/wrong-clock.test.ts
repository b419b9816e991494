import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { LakeKeeper } from '../../src/lake/keep-lake.ts';
import { LakeSlots } from '../../src/lake/lake-slots.ts';
import { choresOf } from '../../src/maintenance/chores.ts';
import { Lease } from '../../src/maintenance/maintenance.ts';
import { liftSuppression } from '../../src/suppression/lift-suppressions.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { newAccessOrganisation } from '../support/access-organisation.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { collectForAll, sweepErasures } from '../support/jobs.ts';
import { newLakeOrganisation, writeAll } from '../support/lake-organisation.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import { countReport, newReportOrganisation, sale } from '../support/report-organisation.ts';
import { runRound, storedRows, WrittenLake } from '../support/written-lake.ts';

/** Work of a process whose clock is nine days ahead of the database's, or behind it. */

const dayMs = 86_400_000;
const never = new AbortController().signal;
let test: TestApp;
let key: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ key } = await test.organisation('acme'));
});
afterEach(() => vi.useRealTimers());
afterAll(() => test.close());

const setClock = (days: number) =>
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(Date.now() + days * dayMs) });

it('the chores delete by the clock of the database', async () => {
  await test.pool.query(
    `update organisations set rejections_kept_days = 3, receipts_kept_days = 3, interactions_kept_days = 3`,
  );
  const sent = await test.app.inject({
    method: 'POST',
    url: '/v1/data/tags',
    headers: { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID() },
    payload: { records: many(20, () => badTag()) },
  });
  expect(sent.statusCode).toBe(400);
  await (await newAccessOrganisation(test, test.pool)).accessed({ user_ids: [randomUUID()] });
  const { organisationId } = await test.organisation('deleted');
  await test.pool.query('update organisations set deleted_at = now() where organisation_id = $1', [
    organisationId,
  ]);
  const count = async () => {
    const { rows } = await test.pool.query(
      `select (select count(*) from rejections) as rejections, (select count(*) from rejection_kinds) as kinds,
         (select count(*) from upload_idempotency_keys) as keys, (select count(*) from receipts) as receipts,
         (select count(*) from organisations where removal_started_at is null) as organisations,
         (select count(*) from access_requests where state = 'done') as collected`,
    );
    return rows[0];
  };
  const before = await count();
  expect(before).toMatchObject({ rejections: '20', keys: '1', organisations: '3', collected: '1' });
  setClock(9);
  const config = {
    receiptsKeptDays: 7,
    changesKeptDays: 7,
    deletedOrganisationsKeptDays: 7,
    databaseTimeoutMs: 30_000,
  };
  for (const chore of choresOf(test.pool, config, new Suppressions([]))) await chore.run();
  expect(await count()).toEqual(before);
});

it.each([9, -9])('such a process leads nothing and holds no slot of the lake (%i days)', async (days) => {
  const lease = new Lease(test.pool, 'test');
  const slots = new LakeSlots(test.pool);
  setClock(days);
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count]).toEqual([false, 0]);
  vi.useRealTimers();
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count > 0]).toEqual([true, true]);
  setClock(days);
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count]).toEqual([false, 0]);
  vi.useRealTimers();
  await lease.release();
});

it.each([9, -9])('erasures and access requests have times of the database (%i days)', async (days) => {
  const { organisationId, request, newPerson, visit } = await newLakeOrganisation(test);
  const suppressions = new Suppressions([erasureKey]);
  const lake = new WrittenLake();
  onTestFinished(() => lake.close());
  const writer = lake.writer(test.pool);
  const { customer_id } = await newPerson();
  await visit({ customer_id, user_id: randomUUID() });
  await writeAll(writer, test.pool, organisationId);
  const begin = async (url: string, payload: object) => {
    const { statusCode, body } = await request('POST', url, payload);
    expect(statusCode, JSON.stringify(body)).toBe(202);
    return body;
  };
  const expectRight = async (time: string, from = '') => {
    const { rows } = await test.pool.query<{ is_right: boolean }>(
      `select abs(extract(epoch from clock_timestamp() - ${time})) < 600 as is_right ${from}`,
    );
    expect(rows, time).not.toEqual([]);
    expect(
      rows.every(({ is_right }) => is_right),
      time,
    ).toBe(true);
  };
  const { access_request_id } = await begin('/v1/access-requests', { customer_ids: [customer_id] });
  setClock(days);
  await untilDone('access_requests', 'done', () => collectForAll(test.pool, suppressions));
  vi.useRealTimers();
  const { erasure_id } = await begin('/v1/erasures', { customer_ids: [customer_id], mode: 'anonymise' });
  setClock(days);
  await untilDone('erasures', 'swept', () => sweepErasures(test.pool, suppressions));
  await writer.step(organisationId, never);
  await writer.erase(organisationId, never);
  expect(await liftSuppression(test.pool, organisationId, erasure_id)).toBeGreaterThan(0);
  const shown = await request('GET', `/v1/access-requests/${access_request_id}`);
  const { body: certified } = await request('GET', `/v1/erasures/${erasure_id}/certificate`);
  vi.useRealTimers();
  expect(shown.body.state).toBe('done');
  await expectRight(`'${certified.certificate.issued}'::timestamptz`);
  for (const [table, ...columns] of [
    ['access_requests', 'started_at', 'done_at'],
    ['erasures', 'started_at', 'swept_at', 'lake_done_at'],
    ['suppressions', 'lifted_at'],
    ['tenants', 'user_ids_rewritten_from'],
  ])
    for (const column of columns)
      await expectRight(column, `from ${table} where organisation_id = '${organisationId}'`);

  /** Work may have to wait for transactions of other tests. */
  async function untilDone(table: string, state: string, work: () => Promise<void>): Promise<void> {
    const isDone = async () => {
      await work();
      const { rows } = await test.pool.query(`select state from ${table} where organisation_id = $1`, [
        organisationId,
      ]);
      return rows.every((row) => row.state === state);
    };
    while (!(await isDone()));
  }
});

it.each([9, -9])('the lake is as of a time of the database (%i days)', async (days) => {
  const { organisationId, send } = await newLakeOrganisation(test);
  const lake = new WrittenLake();
  onTestFinished(() => lake.close());
  // The first step copies what is stored, and the second one follows the log.
  for (let step = 1; step <= 2; step++) {
    await send(2);
    setClock(days);
    await writeAll(lake.writer(test.pool), test.pool, organisationId);
    vi.useRealTimers();
    const { rows } = await test.pool.query(
      `select as_of between now() - interval '1 minute' and now() as is_past from lake_progress where organisation_id = $1`,
      [organisationId],
    );
    expect(rows).toEqual([{ is_past: true }]);
  }
});

describe.each([9, 20])('what an earlier process with such a clock wrote (%i days)', (days) => {
  /** Earlier versions took the ids of changes from the clock of the process. */
  const whileWrong = async (organisationId: string, work: () => Promise<unknown>) => {
    const { rows } = await test.pool.query<{ change_id: string }>(
      'select change_id from changes where organisation_id = $1',
      [organisationId],
    );
    await work();
    const { rowCount } = await test.pool.query(
      `update changes set change_id =
         overlay(change_id::text placing left(uuid_floor(now() + make_interval(days => $3))::text, 13) from 1 for 13)::uuid
       where organisation_id = $1 and change_id <> all ($2)`,
      [organisationId, rows.map(({ change_id }) => change_id), days],
    );
    expect(rowCount).toBeGreaterThan(0);
  };

  it('is in the lake', async () => {
    const { organisationId, request, send } = await newLakeOrganisation(test);
    const tags = many(3, () => newTag());
    const upload = async (tag: object) => {
      expect(await request('POST', '/v1/data/tags', { records: [tag] })).toMatchObject({ statusCode: 200 });
      await send(2);
    };
    const lake = new WrittenLake();
    onTestFinished(() => lake.close());
    const slots = new LakeSlots(test.pool);
    const failed = (error: unknown) => {
      throw error;
    };
    const log = { looked: () => {}, stepped: () => {}, recovered: () => {}, failed };
    // An hour passes before a step for so few rows, but not for rows whose age is unknown.
    const delayMs = 3_600_000;
    const keeper = new LakeKeeper({ pool: test.pool, slots, writer: lake.writer(test.pool), delayMs, log });
    const expectAll = async (count: number) => {
      const stored = await storedRows(test.pool, organisationId);
      expect(stored).toHaveLength(count);
      const isComplete = async () => {
        // On a slow machine, all rounds together take longer than slots are held.
        await slots.renew();
        await runRound(keeper);
        return JSON.stringify(await lake.rows(organisationId)) === JSON.stringify(stored);
      };
      await expect.poll(isComplete).toBe(true);
    };
    await whileWrong(organisationId, () => upload(tags[0]!));
    await expectAll(2);
    await whileWrong(organisationId, () => upload(tags[1]!));
    await upload(tags[2]!);
    await expectAll(6);
    const found = await lake.current(organisationId, 'tags');
    expect(tags.filter(({ tag_id }) => found.some((row) => row.includes(tag_id)))).toEqual(tags);
    await slots.release();
  });

  it('is in the report, which is not as of the future', async () => {
    const { organisationId, touch, upload, report } = await newReportOrganisation(test, `report${days}`);
    const asOfMs = async () => {
      const { as_of } = await report();
      return Date.parse(as_of) - Date.now();
    };
    await countReport(test, organisationId);
    await whileWrong(organisationId, async () => {
      await touch('2026-03-10T11:30:00Z');
      await upload('transactions', sale());
    });
    expect(await asOfMs()).toBeLessThan(60_000);
    await numberForAll(test.pool);
    expect(await asOfMs()).toBeLessThan(60_000);
    await touch('2026-03-10T11:40:00Z');
    await countReport(test, organisationId);
    expect(await report()).toMatchObject({
      total: { recommendations: { touches: 2, transactions: 1 } },
    });
    expect(Math.abs(await asOfMs())).toBeLessThan(60_000);
  });
});
