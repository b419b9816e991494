// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { choresOf } from '../../src/maintenance/chores.ts';
import { changeOrganisation, type OrganisationChange } from '../../src/operator/audited-actions.ts';
import { createPool, isLockTimeout, type OwnPool } from '../../src/postgres/pool.ts';
import { countsOf } from '../../src/records/record-counts.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { expireAll } from '../support/jobs.ts';
import { many } from '../support/new-records.ts';
import { addInteractions, addOldDay, type OldDay } from '../support/old-interactions.ts';
import { addOldWeek } from '../support/old-week.ts';
import { countReport, newReportOrganisation } from '../support/report-organisation.ts';

/** Expiry deletes only an organisation's expired data. */

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
/** The past days, by number of days ago. */
const days = new Map<number, OldDay>();
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
beforeEach(async () => {
  // Each test creates its own days, because other tests may have dropped them.
  await test.pool.query('update organisations set interactions_kept_days = null');
  for (const { name } of days.values()) {
    await test.pool.query(`drop table if exists ${name}`);
    await test.pool.query('delete from interaction_partitions where name = $1', [name]);
  }
  for (let daysAgo = 3; daysAgo <= 12; daysAgo++) days.set(daysAgo, await addOldDay(test.pool, daysAgo));
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const dayMs = 86_400_000;
const day = (daysAgo: number) => days.get(daysAgo) as OldDay;
const set = (slug: string, change: OrganisationChange) =>
  changeOrganisation(test.pool, { actor: 'test' }, slug, change);

async function newOrganisation(change: OrganisationChange = {}) {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const made = await test.organisation(slug);
  await set(slug, change);
  return { slug, ...made };
}

async function storedOf(organisationId: string): Promise<string[]> {
  const { rows } = await test.pool.query<{ id: string }>(
    'select interaction_id as id from interactions where organisation_id = $1 order by 1',
    [organisationId],
  );
  return rows.map(({ id }) => id);
}

async function countOf(organisationId: string): Promise<number> {
  const counts = await countsOf(test.pool, organisationId);
  return Number(counts.find(({ type }) => type === 'interactions')?.records ?? 0);
}

async function isThere({ name }: OldDay): Promise<boolean> {
  const { rows } = await test.pool.query('select from pg_class where relname = $1', [name]);
  return rows.length === 1;
}

it('each of 100 organisations with different settings has exactly what it keeps, day after day', async () => {
  const kept = () => (Math.random() < 0.2 ? null : 1 + Math.floor(Math.random() * 8));
  const newWith = async (at: number) => {
    // The settings of the first 20 organisations never change. Only those organisations have interactions on the oldest
    // days, so the oldest days are dropped.
    const isSteady = at < 20;
    const interactions_kept_days = isSteady ? 1 + (at % 5) : kept();
    const made = await newOrganisation({ interactions_kept_days });
    return { ...made, isSteady, interactions_kept_days, ids: [] as string[] };
  };
  const organisations: Awaited<ReturnType<typeof newWith>>[] = [];
  // Do not exceed the number of connections, because waiting for a connection times out after five seconds.
  for (let first = 0; first < 100; first += 10)
    organisations.push(...(await Promise.all(many(10, (at) => newWith(first + at)))));
  for (const one of organisations)
    for (const [daysAgo, old] of days) {
      const count = daysAgo < 11 || one.isSteady ? Math.floor(Math.random() * 4) : 0;
      one.ids.push(...(await addInteractions(test.pool, one.organisationId, old, count)));
    }
  let dropped = 0;
  for (let ago = 8; ago >= 0; ago--) {
    const at = new Date(Date.now() - ago * dayMs);
    for (const one of organisations.filter(({ isSteady }) => !isSteady && Math.random() < 0.05)) {
      one.interactions_kept_days = kept();
      await set(one.slug, { interactions_kept_days: one.interactions_kept_days });
    }
    await expireAll(serving, ago === 0 ? null : at);
    for (const one of organisations) {
      const { interactions_kept_days: daysKept } = one;
      const firstDayMs = Math.floor(at.getTime() / dayMs - (daysKept ?? 0)) * dayMs;
      if (daysKept !== null) one.ids = one.ids.filter((id) => id >= uuidFloor(firstDayMs));
      expect(await storedOf(one.organisationId)).toEqual(one.ids.toSorted());
      expect(await countOf(one.organisationId)).toBe(one.ids.length);
    }
    const present = await Promise.all([...days.values()].map(isThere));
    dropped = present.filter((is) => !is).length;
  }
  expect(dropped).toBeGreaterThan(0);
  expect(dropped).toBeLessThan(days.size);
  const { rows } = await test.pool.query(
    `select relname from pg_class where relname like 'to_drop_interactions%'`,
  );
  expect(rows).toEqual([]);
  const { rows: noted } = await test.pool.query<{ name: string }>('select name from interaction_partitions');
  const names = new Set(noted.map(({ name }) => name));
  for (const old of days.values()) expect(names.has(old.name)).toBe(await isThere(old));
});

it('a day that one organisation keeps stays, without the rows of the others', async () => {
  const one = await newOrganisation({ interactions_kept_days: 5 });
  const other = await newOrganisation({ interactions_kept_days: 9 });
  const keeper = await newOrganisation();
  await addInteractions(test.pool, one.organisationId, day(12), 3);
  await addInteractions(test.pool, one.organisationId, day(7), 3);
  const ofOther = await addInteractions(test.pool, other.organisationId, day(7), 3);
  await addInteractions(test.pool, one.organisationId, day(11), 3);
  const ofKeeper = await addInteractions(test.pool, keeper.organisationId, day(11), 1);
  await expireAll(serving);
  expect(await storedOf(one.organisationId)).toEqual([]);
  expect(await storedOf(other.organisationId)).toEqual(ofOther.toSorted());
  expect(await storedOf(keeper.organisationId)).toEqual(ofKeeper);
  expect(await Promise.all([12, 11, 10, 7].map((ago) => isThere(day(ago))))).toEqual([
    false,
    true,
    // No organisation has rows on this day.
    false,
    true,
  ]);
});

it('a day is not dropped under a transaction that writes to it', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 1 });
  const keeper = await newOrganisation();
  const ids = await addInteractions(test.pool, organisationId, day(9), 2);
  const late = new pg.Client({ connectionString: test.databaseUrl });
  await late.connect();
  await late.query('begin');
  const [written] = await addInteractions(late, keeper.organisationId, day(9), 1);
  const detach = serving.query('select detach_expired_interactions($1, $2, null)', [
    day(9).name,
    randomEntry(),
  ]);
  for (const dropping of [detach, expireAll(serving)]) {
    const failed = await dropping.then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(isLockTimeout(failed)).toBe(true);
  }
  expect(await storedOf(organisationId)).toEqual(ids.toSorted());
  await late.query('commit');
  await late.end();
  await expireAll(serving);
  expect(await storedOf(keeper.organisationId)).toEqual([written]);
  expect(await storedOf(organisationId)).toEqual([]);
  expect(await isThere(day(9))).toBe(true);
});

it('a day that was detached by a killed process is dropped by the next run', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 1 });
  await addInteractions(test.pool, organisationId, day(9), 2);
  const { name, startMs } = day(9);
  await serving.query('select detach_expired_interactions($1, $2, null)', [name, randomEntry()]);
  const detached = { name: `to_drop_${name}`, startMs };
  expect([await isThere(detached), await isThere(day(9)), await countOf(organisationId)]).toEqual([
    true,
    false,
    0,
  ]);
  await expireAll(serving);
  expect([await isThere(detached), await countOf(organisationId)]).toEqual([false, 0]);
});

it('a detached day is dropped even if the next one is in use', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 1 });
  for (const ago of [9, 8]) await addInteractions(test.pool, organisationId, day(ago), 1);
  const reading = new pg.Client({ connectionString: test.databaseUrl });
  await reading.connect();
  await reading.query(`begin; lock table ${day(8).name} in access share mode`);
  await expect(expireAll(serving)).rejects.toSatisfy(isLockTimeout);
  const detached = { name: `to_drop_${day(9).name}`, startMs: day(9).startMs };
  expect([await isThere(day(9)), await isThere(detached), await isThere(day(8))]).toEqual([
    false,
    false,
    true,
  ]);
  await reading.end();
});

it('the last two days are never dropped; otherwise they would be created again empty', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 1 });
  const recent = { startMs: Math.floor(Date.now() / dayMs - 2) * dayMs };
  await addInteractions(test.pool, organisationId, recent, 4);
  const partitions = async () =>
    (await test.pool.query('select name from interaction_partitions order by 1')).rows.slice(-38);
  const before = await partitions();
  await expireAll(serving);
  expect(await storedOf(organisationId)).toEqual([]);
  expect(await partitions()).toEqual(before);
});

it('a step that is rolled back changes nothing, and the next one continues', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 2 });
  const keeper = await newOrganisation();
  for (const ago of [6, 5]) {
    await addInteractions(test.pool, organisationId, day(ago), 25);
    await addInteractions(test.pool, keeper.organisationId, day(ago), 1);
  }
  await serving.query('select begin_expiry(null)');
  const step = (client: Pick<pg.Client, 'query'> = serving) =>
    client.query('select expire_interactions($1, $2, 10) as has_more', [organisationId, randomEntry()]);
  const left: number[] = [];
  for (let hasMore = true; hasMore; ) {
    const killed = new pg.Client({ connectionString: test.databaseUrl });
    killed.on('error', () => {});
    await killed.connect();
    await killed.query('begin');
    await step(killed);
    await test.pool.query('select pg_terminate_backend($1::integer)', [
      (killed as unknown as { processID: number }).processID,
    ]);
    hasMore = (await step()).rows[0].has_more;
    left.push((await storedOf(organisationId)).length);
    expect(await countOf(organisationId)).toBe(left.at(-1));
  }
  expect(left).toEqual([40, 30, 20, 10, 0]);
  const { rows } = await test.pool.query('select from changes where organisation_id = $1 and size = 0', [
    organisationId,
  ]);
  expect(rows).toHaveLength(5);
});

const randomEntry = () => `${uuidFloor(Date.now()).slice(0, 14)}7${randomUUID().slice(15)}`;

it('more interactions of one millisecond than fit into a step are deleted together', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 2 });
  await addInteractions(test.pool, organisationId, day(5), 60, (at) => Math.floor(at / 30) * 7);
  await serving.query('select begin_expiry(null)');
  const left: number[] = [];
  for (let hasMore = true; hasMore; ) {
    const { rows } = await serving.query('select expire_interactions($1, $2, 10) as has_more', [
      organisationId,
      randomEntry(),
    ]);
    hasMore = rows[0].has_more;
    left.push((await storedOf(organisationId)).length);
  }
  expect([...new Set(left)]).toEqual([60, 30, 0]);
});

it('two concurrent processes delete everything once', async () => {
  const one = await newOrganisation({ interactions_kept_days: 2 });
  const keeper = await newOrganisation();
  for (const ago of [7, 6, 5, 4]) await addInteractions(test.pool, one.organisationId, day(ago), 50);
  await addInteractions(test.pool, keeper.organisationId, day(6), 5);
  // A process fails if another process has locked the day that it tries to drop.
  await Promise.allSettled(many(3, () => expireAll(serving)));
  await expireAll(serving);
  expect(await storedOf(one.organisationId)).toEqual([]);
  expect([await countOf(one.organisationId), await countOf(keeper.organisationId)]).toEqual([0, 5]);
});

it('a retention that was switched off or extended meanwhile deletes nothing more', async () => {
  const [off, longer] = await Promise.all(many(2, () => newOrganisation({ interactions_kept_days: 2 })));
  const kept: string[][] = [];
  for (const { organisationId } of [off!, longer!])
    kept.push((await addInteractions(test.pool, organisationId, day(6), 5)).toSorted());
  await serving.query('select begin_expiry(null)');
  await set(off!.slug, { interactions_kept_days: null });
  await set(longer!.slug, { interactions_kept_days: 30 });
  await expireAll(serving);
  expect(await Promise.all([off!, longer!].map((one) => storedOf(one.organisationId)))).toEqual(kept);
  await set(longer!.slug, { interactions_kept_days: 3 });
  await expireAll(serving);
  expect(await storedOf(longer!.organisationId)).toEqual([]);
  expect(await storedOf(off!.organisationId)).toEqual(kept[0]);
});

it('the service cannot make anything expire too early', async () => {
  const { organisationId } = await newOrganisation({ interactions_kept_days: 11 });
  const ids = await addInteractions(test.pool, organisationId, day(9), 1);
  const future = new Date(Date.now() + dayMs);
  await expect(serving.query('select begin_expiry($1)', [future])).rejects.toThrow('before its time');
  const detach = 'select detach_expired_interactions($1, $2, $3) as is_detached';
  const { name } = day(9);
  await expect(serving.query(detach, [name, randomEntry(), future])).rejects.toThrow('before its time');
  for (const partition of [name, 'shops', 'interactions'])
    expect((await serving.query(detach, [partition, randomEntry(), null])).rows).toEqual([
      { is_detached: false },
    ]);
  for (const partition of [name, 'to_drop_shops', `to_drop_${name}; drop table shops`])
    await expect(serving.query('select drop_detached_interactions($1)', [partition])).rejects.toThrow(
      'not a detached day',
    );
  expect(
    (
      await serving.query('select expire_interactions($1, $2, 10) as has_more', [
        organisationId,
        randomEntry(),
      ])
    ).rows,
  ).toEqual([{ has_more: false }]);
  expect(await storedOf(organisationId)).toEqual(ids);
});

it('organisations with nothing to delete are not queried one by one', async () => {
  await test.pool.query(
    `insert into organisations (organisation_id, slug, name, interactions_kept_days, receipts_kept_days)
     select gen_random_uuid(), 'many-' || n, 'many', 1 + n % 8, 10 from generate_series(1, 3000) n`,
  );
  let sent = 0;
  const counting = new Proxy(serving, {
    get(pool, name) {
      const value = Reflect.get(pool, name);
      if (name === 'query') sent++;
      return typeof value === 'function' ? value.bind(pool) : value;
    },
  });
  await expireAll(counting);
  // This includes the statements for empty days, which are dropped.
  expect(sent).toBeLessThan(50);
  const { rows } = await test.pool.query(
    `select from retention_progress where deleted_below < expired_below and organisation_id in (
       select organisation_id from organisations where name = 'many')`,
  );
  expect(rows).toEqual([]);
  await test.pool.query(`update organisations set receipts_kept_days = null where name = 'many'`);
});

it('the report keeps its figures', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, touch, report } = await newReportOrganisation(test, slug);
  await touch('2026-03-10T11:00:00Z');
  await countReport(test, organisationId);
  const before = await report();
  // Change the id as if the interaction had been received on that day.
  await test.pool.query('update interactions set interaction_id = $2 where organisation_id = $1', [
    organisationId,
    uuidFloor(day(8).startMs),
  ]);
  await set(slug, { interactions_kept_days: 2 });
  await expireAll(serving);
  expect(await storedOf(organisationId)).toEqual([]);
  await countReport(test, organisationId);
  const { as_of: _, ...after } = await report();
  expect(before).toMatchObject(after);
  expect(JSON.stringify(before.total)).toContain('"touches":1');
});

it('receipts of an organisation are deleted with their answers after its own days, and other receipts stay', async () => {
  const one = await newOrganisation({ receipts_kept_days: 20 });
  const other = await newOrganisation();
  const receiptsOf = async (organisationId: string) => {
    const count = async (table: string) =>
      (await test.pool.query(`select from ${table} where organisation_id = $1`, [organisationId])).rowCount;
    return [await count('receipts'), await count('receipt_batches')];
  };
  const week = await addOldWeek(test.pool, one.organisationId, 5);
  const moved = (text: string) =>
    test.pool.query(text.replaceAll('$week', `'${week.requestId}'`), [other.organisationId]);
  await moved(`insert into receipts select (jsonb_populate_record(r, jsonb_build_object('organisation_id', $1::text))).*
    from receipts r where request_id = $week`);
  await moved(
    `insert into receipt_batches select $1, request_id, batch, answer from receipt_batches where request_id = $week`,
  );
  const headers = { authorization: `Bearer ${one.key}` };
  const payload = { records: [{ tag_id: randomUUID(), name: 'new' }] };
  await test.app.inject({ method: 'POST', url: '/v1/data/tags', headers, payload });
  expect(await receiptsOf(one.organisationId)).toEqual([2, 2]);
  await expireAll(serving);
  expect(await receiptsOf(one.organisationId)).toEqual([1, 1]);
  expect(await receiptsOf(other.organisationId)).toEqual([1, 1]);
  const gone = await test.app.inject({ url: `/v1/requests/${week.requestId}`, headers });
  expect(gone.statusCode).toBe(404);
});

it('rejections of an organisation are deleted after its own days, and no longer counted', async () => {
  const [one, other] = [await newOrganisation({ rejections_kept_days: 4 }), await newOrganisation()];
  for (const { key, organisationId } of [one, other]) {
    const headers = { authorization: `Bearer ${key}` };
    const payload = { records: [{ tag_id: 'no' }, { tag_id: 'neither' }] };
    await test.app.inject({ method: 'POST', url: '/v1/data/tags', headers, payload });
    await test.pool.query(
      `update rejections set rejection_id = $2 where organisation_id = $1 and index = 0`,
      [organisationId, uuidFloor(Date.now() - 6 * dayMs)],
    );
  }
  const config = {
    receiptsKeptDays: 30,
    changesKeptDays: 7,
    databaseTimeoutMs: 30_000,
    deletedOrganisationsKeptDays: 30,
  };
  await choresOf(serving, config, new Suppressions([]))
    .find(({ name }) => name === 'remove old rejections')
    ?.run();
  const open = async ({ key }: { key: string }) => {
    const answer = await test.app.inject({ url: '/v1/data', headers: { authorization: `Bearer ${key}` } });
    return answer.json().types.find(({ type }: { type: string }) => type === 'tags').open_rejections;
  };
  expect([await open(one), await open(other)]).toEqual([1, 2]);
});
