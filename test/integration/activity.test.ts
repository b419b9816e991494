import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ActivityCounts } from '../../src/activity/activity-counts.ts';
import { busiestOrganisations, serviceState } from '../../src/activity/find-activity.ts';
import { ActivityReport } from '../../src/activity/report-activity.ts';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { many, newShop } from '../support/new-records.ts';

/** Tests the activity rows that processes write about themselves and their organisations. */

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const reportOf = (isLeader: boolean, counts = new ActivityCounts()) =>
  new ActivityReport(serving, { version: '1.2.3', isLeader: () => isLeader, counts });

const top = (by: 'requests' | 'records' | 'interactions' | 'rejections') =>
  busiestOrganisations(test.pool, { by, minutes: 5, count: 10 });

it('adds up the busiest organisations over processes and minutes', async () => {
  const [small, large] = [await test.organisation('small'), await test.organisation('large')];
  const post = (key: string, url: string, payload: object) =>
    test.app.inject({ method: 'POST', url, headers: { authorization: `Bearer ${key}` }, payload });
  const shop = newShop();
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  await post(small.key, '/v1/data/shops', { records: [shop] });
  await post(small.key, '/user-interactions', visit);
  await post(large.key, '/v1/data/shops', { records: [...many(5, () => newShop()), { shop_id: 'no' }] });
  await post(large.key, '/v1/data/shops?dry_run=true', { records: many(50, () => newShop()) });
  const report = reportOf(true, test.parts.activity);
  await report.report();
  await post(large.key, '/v1/data/shops', { records: many(10, () => newShop()) });
  await report.report();
  const other = new ActivityCounts();
  other.answered({
    organisation_id: small.organisationId,
    operation_id: 'upload-shops',
    status: 200,
    body_bytes: 10,
    dry_run: undefined,
    counts: { received: 3, failed: 0 },
  });
  await reportOf(false, other).report();
  const { organisations, from, to } = await top('records');
  expect(Date.parse(to) - Date.parse(from)).toBe(5 * 60_000);
  expect(organisations).toEqual([
    {
      organisation_id: large.organisationId,
      slug: 'large',
      name: 'large',
      requests: 3,
      records: 16,
      interactions: 0,
      bytes: expect.any(Number),
      rejections: 1,
      limits_hit: 0,
    },
    expect.objectContaining({ slug: 'small', requests: 3, records: 4, interactions: 1 }),
  ]);
  expect(organisations[0]?.bytes).toBeGreaterThan(1_000);
  const slugs = async (by: Parameters<typeof top>[0]) =>
    (await top(by)).organisations.map(({ slug }) => slug);
  expect(await slugs('interactions')).toEqual(['small']);
  expect(await slugs('rejections')).toEqual(['large']);
});

it('counts only the given minutes, and the leader removes old ones', async () => {
  const organisationId = randomUUID();
  for (const ago of ['30 minutes', '3 hours'])
    await test.pool.query(
      `insert into organisation_activity select now() - $1::interval, gen_random_uuid(), $2, 1000000, 0, 0, 0, 0, 0`,
      [ago, organisationId],
    );
  const within = async (minutes: number) =>
    (await busiestOrganisations(test.pool, { by: 'requests', minutes, count: 1 })).organisations;
  expect(await within(60)).toEqual([
    expect.objectContaining({ organisation_id: organisationId, slug: null, requests: 1_000_000 }),
  ]);
  expect((await within(20))[0]?.organisation_id).not.toBe(organisationId);
  const kept = async () =>
    (await test.pool.query('select from organisation_activity where organisation_id = $1', [organisationId]))
      .rowCount;
  await reportOf(false).report();
  expect(await kept()).toBe(2);
  await reportOf(true).report();
  expect(await kept()).toBe(1);
});

it('lists the running processes, with the chores that the leader did', async () => {
  await test.pool.query('delete from processes');
  const [leader, follower] = [reportOf(true), reportOf(false)];
  leader.choreDone('make partitions');
  leader.choreFailed('drop old changes');
  const stop = leader.start((error) => expect(error).toBeUndefined());
  await follower.report();
  await expect.poll(async () => (await serviceState(test.pool)).processes).toHaveLength(2);
  const state = await serviceState(test.pool);
  expect(state.processes.map(({ version, is_leader }) => [version, is_leader]).toSorted()).toEqual([
    ['1.2.3', false],
    ['1.2.3', true],
  ]);
  expect(state.maintenance).toEqual([
    { chore: 'drop old changes', ran_at: null, failed_at: expect.stringMatching(/Z$/) },
    { chore: 'make partitions', ran_at: expect.stringMatching(/Z$/), failed_at: null },
  ]);
  // The time of the last failure is kept when the chore succeeds again.
  leader.choreDone('drop old changes');
  await leader.report();
  const [chore] = (await serviceState(test.pool)).maintenance;
  expect(chore).toMatchObject({ ran_at: expect.any(String), failed_at: expect.any(String) });
  await stop();
  expect((await serviceState(test.pool)).processes).toHaveLength(1);
  // Simulate a killed process.
  await test.pool.query(`update processes set seen_at = now() - interval '61 minutes'`);
  await reportOf(true).report();
  expect((await serviceState(test.pool)).processes).toHaveLength(1);
});

it('shows how far ahead partitions exist', async () => {
  const { partitions, nodes } = await serviceState(test.pool);
  expect(partitions.map(({ table }) => table)).toEqual([
    'changes',
    'interactions',
    'receipt_batches',
    'receipts',
  ]);
  for (const { count, ends_at } of partitions) {
    expect(count).toBeGreaterThan(1);
    expect(Date.parse(ends_at)).toBeGreaterThan(Date.now());
    expect(ends_at).toMatch(/T00:00:00\.000Z$/);
  }
  if (process.env.CITUS_URL === undefined) expect(nodes).toBeNull();
});
