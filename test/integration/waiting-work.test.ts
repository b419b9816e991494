// @module-tag postgres-15

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { counting } from '../../src/maintenance/chores.ts';
import { changeOrganisation, deleteOrganisation } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { collectForAll, expireAll, removeDeleted, settleAll, sweepErasures } from '../support/jobs.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';

/** Tests the leader's metrics for pending work, measured with the serving role's privileges. */

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const by = { actor: 'test' };
const suppressions = new Suppressions([erasureKey]);
const config = { changesKeptDays: 7, deletedOrganisationsKeptDays: 30 };
const nothing = { waiting: 0, oldestSeconds: 0 };
const daySeconds = 86_400;

type Work = Record<string, { waiting: number; oldestSeconds: number }>;

async function count(): Promise<Work> {
  let counted: Work = {};
  const chores = counting(serving, config, ({ work }) => {
    if (work) counted = work;
  });
  await chores.find(({ name }) => name === 'count waiting work')?.run();
  return counted;
}

/** Compares with a precision of a minute, because a machine may stall for seconds. */
const about = (seconds: number) => expect.closeTo(seconds / 60, 0);
async function ageOf(work: string) {
  const { waiting, oldestSeconds } = (await count())[work] ?? nothing;
  return { waiting, minutes: oldestSeconds / 60 };
}

/** Returns a UUIDv7 from a day ago. */
function oldId(): string {
  const hex = (Date.now() - daySeconds * 1_000).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}${randomUUIDv7().slice(13)}`;
}

async function newOrganisation() {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  return { slug, ...(await test.organisation(slug)) };
}

it('without work, every kind is reported as 0', async () => {
  expect(await count()).toEqual({
    erasures: nothing,
    'lake erasures': nothing,
    'access requests': nothing,
    settling: nothing,
    rewriting: nothing,
    retention: nothing,
    purging: nothing,
    'expired access requests': nothing,
    removals: nothing,
  });
});

it.each([
  { work: 'erasures', path: 'erasures', table: 'erasures', id: 'erasure_id', finish: sweepErasures },
  {
    work: 'access requests',
    path: 'access-requests',
    table: 'access_requests',
    id: 'access_request_id',
    finish: collectForAll,
  },
])('$work count from their request until they are done', async ({ work, path, table, id, finish }) => {
  const { organisationId, key } = await newOrganisation();
  const request = () =>
    test.app.inject({
      method: 'POST',
      url: `/v1/${path}`,
      headers: { authorization: `Bearer ${key}` },
      payload: { customer_ids: [randomUUID()], ...(path === 'erasures' && { mode: 'delete' }) },
    });
  const answers = [await request(), await request()];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
  expect(await ageOf(work)).toEqual({ waiting: 2, minutes: about(0) });
  const old = oldId();
  for (const each of [table, `${table.slice(0, -1)}_ids`])
    await test.pool.query(`update ${each} set ${id} = $2 where organisation_id = $1 and ${id} = $3`, [
      organisationId,
      old,
      answers[0]?.json()[id],
    ]);
  expect(await ageOf(work)).toEqual({ waiting: 2, minutes: about(daySeconds) });
  await expect
    .poll(async () => {
      await finish(serving, suppressions);
      return (await count())[work];
    })
    .toEqual(nothing);
});

it('batches count from their upload until they are settled', async () => {
  const { organisationId } = await newOrganisation();
  await test.pool.query(
    `insert into unsettled_batches (organisation_id, type, batch_id, record_ids, updated)
     select $1, 'tags', id, '{}', '{}' from unnest($2::uuid[]) as id`,
    [organisationId, [oldId(), randomUUIDv7()]],
  );
  expect(await ageOf('settling')).toEqual({ waiting: 2, minutes: about(daySeconds) });
  await settleAll(serving);
  expect((await count()).settling).toEqual(nothing);
});

it('expired data counts from the run that found it until it is deleted, and not if it is kept for good', async () => {
  const { slug, organisationId } = await newOrganisation();
  const old = await addOldDay(test.pool, 5);
  await addInteractions(test.pool, organisationId, old, 3);
  // Another organisation keeps the day, so the day is not dropped.
  await addInteractions(test.pool, (await newOrganisation()).organisationId, old, 1);
  await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 2 });
  expect((await count()).retention).toEqual(nothing);
  expect(await expireAll(serving, null, -1)).toBe('more');
  expect(await ageOf('retention')).toEqual({ waiting: 1, minutes: about(0) });
  await test.pool.query(`update jobs set since = now() - interval '1 day'`);
  // More interactions expire in the meantime.
  await test.pool.query(`update retention_progress set expired_below = '${oldId()}'`);
  expect(await expireAll(serving, null, -1)).toBe('more');
  expect(await ageOf('retention')).toEqual({ waiting: 1, minutes: about(daySeconds) });
  await changeOrganisation(test.pool, by, slug, { interactions_kept_days: null });
  expect(await expireAll(serving)).toBe('all');
  expect((await count()).retention).toEqual(nothing);
  await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 2 });
  expect(await expireAll(serving, null, -1)).toBe('more');
  expect(await ageOf('retention')).toEqual({ waiting: 1, minutes: about(0) });
  expect(await expireAll(serving)).toBe('all');
  expect((await count()).retention).toEqual(nothing);
});

it('a removal counts from when it could start, and then from its last step; retention adds nothing to it', async () => {
  const { slug, organisationId } = await newOrganisation();
  await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 2 });
  await deleteOrganisation(test.pool, by, slug);
  const deletedDaysAgo = (days: number) =>
    test.pool.query(
      `update organisations set deleted_at = now() - make_interval(days => $2) where slug = $1`,
      [slug, days],
    );
  await deletedDaysAgo(29);
  expect((await count()).removals).toEqual(nothing);
  await deletedDaysAgo(31);
  expect(await ageOf('removals')).toEqual({ waiting: 1, minutes: about(daySeconds) });
  await serving.query('select begin_removal($1, 30)', [organisationId]);
  expect(await ageOf('removals')).toEqual({ waiting: 1, minutes: about(0) });
  await test.pool.query(`update removals set stepped_at = now() - interval '2 days'`);
  expect(await ageOf('removals')).toEqual({ waiting: 1, minutes: about(2 * daySeconds) });
  await serving.query(`select remove_rows($1, 0, 'tags', 10)`, [organisationId]);
  expect(await ageOf('removals')).toEqual({ waiting: 1, minutes: about(0) });
  await serving.query('select begin_expiry(null)');
  const { rows } = await test.pool.query('select from retention_progress where organisation_id = $1', [
    organisationId,
  ]);
  expect(rows).toEqual([]);
  await expect
    .poll(async () => {
      await removeDeleted(serving);
      return (await count()).removals;
    })
    .toEqual(nothing);
});
