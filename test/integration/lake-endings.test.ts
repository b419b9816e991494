import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { currentPass } from '../../src/lake/ending/lake-endings.ts';
import { LakeKeeper } from '../../src/lake/keep-lake.ts';
import { LakeSlots } from '../../src/lake/lake-slots.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import {
  changeOrganisation,
  deleteOrganisation,
  restoreOrganisation,
} from '../../src/operator/audited-actions.ts';
import { findOrganisation } from '../../src/operator/organisations.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { expireAll, removeDeleted } from '../support/jobs.ts';
import { newLakeOrganisation, tracesOf, writeAll } from '../support/lake-organisation.ts';
import { tracesInFolder } from '../support/lake-traces.ts';
import { addInteractions, addOldDay, type OldDay } from '../support/old-interactions.ts';
import { forgetChanges } from '../support/report-organisation.ts';
import { runRound, storedRows, WrittenLake } from '../support/written-lake.ts';

/** Tests how the lake process removes lakes that were switched off, lakes of deleted organisations, and expired data. */

let test: TestApp;
/** A pool that connects as the serving role. */
let pool: OwnPool;
let lake: WrittenLake;
const days: OldDay[] = [];
const by = { actor: 'test' };
const never = new AbortController().signal;

beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
  for (let daysAgo = 3; daysAgo <= 8; daysAgo++) days.push(await addOldDay(test.pool, daysAgo));
});
afterAll(async () => {
  await pool.end();
  await test.close();
});
beforeEach(() => {
  lake = new WrittenLake();
});
afterEach(async () => {
  await lake.close();
  await test.pool.query('update organisations set lake = false');
  await test.pool.query('delete from lake_progress');
  await test.pool.query(`update lake_slots set holder = null, ends_at = '-infinity'`);
  await test.pool.query('delete from lake_processes');
});

const folderOf = (organisationId: string) => join(lake.folder, 'lake', organisationId);
const progressOf = async (organisationId: string) =>
  (
    await pool.query(
      'select removing_since is not null as is_removing from lake_progress where organisation_id = $1',
      [organisationId],
    )
  ).rows[0];

/** Runs several rounds, each in a newly started process, to simulate a few minutes. */
async function runRounds(rounds = 3): Promise<unknown[]> {
  const failures: unknown[] = [];
  const slots = new LakeSlots(pool);
  // Use a new keeper each round, because a keeper checks for erasures and removals only every ten seconds.
  for (let round = 0; round < rounds; round++) {
    // On a slow machine, several rounds take longer than slots are held.
    await slots.renew();
    const log = {
      looked: () => {},
      stepped: () => {},
      recovered: () => {},
      failed: (error: unknown) => failures.push(error),
    };
    const keeper = new LakeKeeper({ pool, slots, writer: lake.writer(pool), delayMs: 3_600_000, log });
    await runRound(keeper);
    await test.pool.query(
      'update lake_progress set removing_since = now() - make_interval(secs => $1) where removing_since is not null',
      [(2 * lakeLimits.removingMs) / 1_000],
    );
  }
  await slots.release();
  return failures;
}

it('a process erases people at once, however long new rows may wait', async () => {
  const { organisationId, request, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [person, other] = [await newPerson(), await newPerson()];
  await visit(person);
  expect(await runRounds()).toEqual([]);
  expect((await tracesInFolder(lake.folder, tracesOf(person))).length).toBeGreaterThan(0);
  await visit(other);
  const erasureId = await erase('anonymise', person);
  expect(await runRounds(1)).toEqual([]);
  expect(await tracesInFolder(lake.folder, tracesOf(person))).toEqual([]);
  expect((await request('GET', `/v1/erasures/${erasureId}`)).body.lake).toBe('done');
  // Before the erasure, the round wrote the logged changes to the lake.
  expect(await lake.rows(organisationId)).toEqual(await storedRows(pool, organisationId));
});

it('the files of a lake that is switched off are removed, and it can be switched on again', async () => {
  const one = await newLakeOrganisation(test);
  const other = await newLakeOrganisation(test);
  const person = await one.newPerson();
  await one.visit(person);
  await other.send(3);
  await runRounds();
  const erasureId = await one.erase('anonymise', person);
  await changeOrganisation(test.pool, by, one.slug, { lake: false });
  // The process crashes after deleting one file.
  let left = 1;
  lake.fault = (call) => {
    if (call.startsWith('remove ') && left-- === 0) throw new Error('the process ends');
  };
  expect(await runRounds(1)).toMatchObject([{ message: 'the process ends' }]);
  lake.fault = () => {};
  expect(await progressOf(one.organisationId)).toEqual({ is_removing: true });
  expect(existsSync(folderOf(one.organisationId))).toBe(true);
  // Some files are missing, so the writer may not write anything until the remaining files are deleted.
  await changeOrganisation(test.pool, by, one.slug, { lake: true });
  await expect(lake.writer(pool).step(one.organisationId, new AbortController().signal)).rejects.toThrow();
  expect(await runRounds(1)).toEqual([]);
  expect(existsSync(folderOf(one.organisationId))).toBe(false);
  expect(await progressOf(one.organisationId)).toBeUndefined();
  expect((await one.request('GET', `/v1/erasures/${erasureId}`)).body.lake).toBe('done');
  await runRounds();
  expect(await lake.rows(one.organisationId)).toEqual(await storedRows(pool, one.organisationId));
  expect(await lake.rows(one.organisationId)).toHaveLength(6);
  expect(await lake.rows(other.organisationId)).toHaveLength(3);
});

it('files of a lake are looked for again before their removal is over', async () => {
  const { slug, organisationId, send } = await newLakeOrganisation(test);
  await send(3);
  await runRounds();
  await changeOrganisation(test.pool, by, slug, { lake: false });
  const slots = new LakeSlots(pool);
  await slots.renew();
  const writer = lake.writer(pool);
  await writer.remove(organisationId);
  expect(existsSync(folderOf(organisationId))).toBe(false);
  // Simulate a late write by the slot's previous holder.
  await lake.store.create(`${organisationId}/interactions/late.parquet`, Buffer.from('late'));
  expect(existsSync(folderOf(organisationId))).toBe(true);
  await writer.remove(organisationId);
  expect(await progressOf(organisationId)).toEqual({ is_removing: true });
  await slots.release();
  expect(await runRounds(2)).toEqual([]);
  expect(existsSync(folderOf(organisationId))).toBe(false);
  expect(await progressOf(organisationId)).toBeUndefined();
});

it('nothing is written and nothing removed while a deleted organisation can be restored, but people are erased', async () => {
  const { slug, organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  await runRounds();
  const version = await lake.version(organisationId);
  await send(4);
  const erasureId = await erase('anonymise', person);
  await deleteOrganisation(test.pool, by, slug);
  expect(await runRounds()).toEqual([]);
  const { rows } = await pool.query('select lake_state from erasures where erasure_id = $1', [erasureId]);
  expect(rows).toEqual([{ lake_state: 'done' }]);
  expect(await tracesInFolder(lake.folder, tracesOf(person))).toEqual([]);
  expect(await lake.rows(organisationId)).toHaveLength(6);
  expect(await lake.version(organisationId)).toBe(version + 2);
  await restoreOrganisation(test.pool, by, slug);
  await writeAll(lake.writer(pool), pool, organisationId);
  expect(await lake.rows(organisationId)).toEqual(await storedRows(pool, organisationId));
});

it('an organisation is removed when its files are', async () => {
  const one = await newLakeOrganisation(test);
  const other = await newLakeOrganisation(test);
  for (const { send } of [one, other]) await send(5);
  await runRounds();
  await deleteOrganisation(test.pool, by, one.slug);
  await test.pool.query(`update organisations set deleted_at = now() - interval '31 days' where slug = $1`, [
    one.slug,
  ]);
  // All other files are deleted.
  await expect
    .poll(async () => {
      await removeDeleted(pool);
      const found = await findOrganisation(test.pool, one.slug);
      return found?.removal?.table;
    })
    .toBe('report_progress');
  for (let run = 0; run < 3; run++) await removeDeleted(pool);
  expect(await findOrganisation(test.pool, one.slug)).toBeDefined();
  expect(readdirSync(folderOf(one.organisationId))).toContain('interactions');
  expect(await runRounds()).toEqual([]);
  expect(readdirSync(join(lake.folder, 'lake'))).toEqual([other.organisationId]);
  await expect
    .poll(async () => {
      await removeDeleted(pool);
      return findOrganisation(test.pool, one.slug);
    })
    .toBeUndefined();
  expect(await lake.rows(other.organisationId)).toHaveLength(5);
});

it.each([false, true])(
  'days that have expired leave no file, also after an outage longer than the log is kept (%s)',
  async (isOutage) => {
    const { slug, organisationId, send } = await newLakeOrganisation(test);
    const other = await newLakeOrganisation(test);
    const writer = lake.writer(pool);
    await writeAll(writer, pool, organisationId);
    const ids: string[] = [];
    for (const day of days) {
      // Write several files and merge them. The old ones are kept for readers of older versions.
      for (let file = 0; file < 3; file++) {
        ids.push(...(await addInteractions(test.pool, organisationId, day, 5)));
        await writer.step(organisationId, new AbortController().signal);
      }
      await addInteractions(test.pool, other.organisationId, day, 1);
    }
    await send(5);
    await writeAll(writer, pool, organisationId);
    await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 5 });
    await expireAll(test.pool);
    if (isOutage) await forgetChanges(test, organisationId);
    await send(1);
    // The process crashes between the commit and the deletion of files.
    lake.fault = (call) => {
      if (call.startsWith('remove ')) throw new Error('the process ends');
    };
    const ended = expect(writeAll(lake.writer(pool), pool, organisationId));
    await ended.rejects.toThrow('the process ends');
    lake.fault = () => {};
    await writeAll(lake.writer(pool), pool, organisationId);
    const stored = await storedRows(pool, organisationId);
    expect(await lake.rows(organisationId)).toEqual(stored);
    expect(stored.length).toBeLessThan(ids.length);
    const expired = ids.filter((id) => !stored.join().includes(id));
    expect(expired.length).toBeGreaterThan(0);
    expect(await tracesInFolder(lake.folder, expired)).toEqual([]);
    const kept = new Set(
      stored.map((row) => new Date(Number(JSON.parse(row).at(-1)) / 1_000).toISOString().slice(0, 10)),
    );
    const folders = readdirSync(join(folderOf(organisationId), 'interactions'));
    expect(folders.toSorted()).toEqual(
      ['_delta_log', ...[...kept].map((day) => `received_on=${day}`)].toSorted(),
    );
  },
);

it('an erasure ends if the log of a table is deleted under it, and the lake starts over', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  const writer = lake.writer(pool);
  await writeAll(writer, pool, organisationId);
  await erase('delete', person);
  await writer.step(organisationId, never);
  lake.fault = (call) => {
    if (/^getFile .*\/interactions\//.test(call))
      rmSync(join(lake.tableFolder(organisationId, 'interactions'), '_delta_log'), {
        recursive: true,
        force: true,
      });
  };
  await writer.erase(organisationId, never);
  expect(await progressOf(organisationId)).toEqual({ is_removing: true });
});

it('an erasure that is added to a running pass starts that pass again', async () => {
  const { organisationId } = await test.organisation('passes');
  const add = (lakeAfter: string | null) =>
    test.pool.query(
      `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, state, lake_state, lake_after)
       values ($1, gen_random_uuid(), 'delete', 'key', 1, 1, 'swept', 'running', $2)`,
      [organisationId, lakeAfter],
    );
  await add('customers b');
  await add('customers b');
  expect(await currentPass(pool, organisationId)).toMatchObject({ after: 'customers b' });
  // A process that stalled before it started what was pending.
  await add(null);
  expect(await currentPass(pool, organisationId)).toMatchObject({ after: null });
  await test.pool.query('delete from erasures where organisation_id = $1', [organisationId]);
});
