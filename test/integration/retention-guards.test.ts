import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repeatActs } from '../../src/operator/after-restore.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { isLockTimeout } from '../../src/postgres/pool.ts';
import { rejectionsKept } from '../../src/retention/kept-days.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';

/** Expiry does not delay operators, and waits for their transactions if necessary. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const by = { actor: 'test' };

it('operators can change organisations while a day is locked and counted', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId } = await test.organisation(slug);
  await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 1 });
  const day = await addOldDay(test.pool, 9);
  await addInteractions(test.pool, organisationId, day, 2);
  const writing = new pg.Client({ connectionString: test.databaseUrl });
  await writing.connect();
  await writing.query('begin');
  await writing.query(`lock table ${day.name} in row exclusive mode`);
  const isWaiting = async () =>
    (
      await test.pool.query(
        'select from pg_locks where not granted and relation = $1::regclass and database = (select oid from pg_database where datname = current_database())',
        [day.name],
      )
    ).rowCount;
  /** Whether an operator's change is done while the day is waited for. */
  const isChangedMeanwhile = async () => {
    let isOver = false;
    const detaching = test.pool
      .query('select detach_expired_interactions($1, $2, null)', [day.name, randomUUID()])
      .catch((error: unknown) => error)
      .finally(() => {
        isOver = true;
      });
    while (!isOver && (await isWaiting()) === 0) await sleep(5);
    await test.pool.query(`update organisations set name = 'other' where slug = $1`, [slug]);
    const waiting = await isWaiting();
    expect(isLockTimeout(await detaching)).toBe(true);
    return waiting === 1;
  };
  // The statement waits for two seconds at most, which may not be enough on a busy machine.
  await expect.poll(isChangedMeanwhile).toBe(true);
  await writing.query('rollback');
  await writing.end();
});

it('a setting that is being changed is waited for', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId } = await test.organisation(slug);
  const day = await addOldDay(test.pool, 8);
  const ids = await addInteractions(test.pool, organisationId, day, 2);
  const operator = new pg.Client({ connectionString: test.databaseUrl });
  await operator.connect();
  const isWaiting = async () => {
    const { rows } = await test.pool.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%detach_expired%'`,
    );
    return rows.length > 0;
  };
  /** Detaches the day while its retention is extended. Returns undefined unless the change is waited for until its end. */
  const detachMeanwhile = async () => {
    await changeOrganisation(test.pool, by, slug, { interactions_kept_days: 1 });
    await operator.query('begin');
    await operator.query('update organisations set interactions_kept_days = 90 where slug = $1', [slug]);
    let isOver = false;
    const detaching = test.pool
      .query('select detach_expired_interactions($1, $2, null) as is_detached', [day.name, randomUUID()])
      .catch((error: unknown) => error)
      .finally(() => {
        isOver = true;
      });
    let hasWaited = false;
    while (!isOver && !hasWaited) hasWaited = await isWaiting();
    await operator.query('commit');
    const result = await detaching;
    return hasWaited && !isLockTimeout(result) ? (result as pg.QueryResult).rows : undefined;
  };
  // The statement waits for two seconds at most, which may not be enough on a busy machine.
  await expect.poll(detachMeanwhile).toEqual([{ is_detached: false }]);
  await operator.end();
  const { rows } = await test.pool.query('select from interactions where organisation_id = $1', [
    organisationId,
  ]);
  expect(rows).toHaveLength(ids.length);
});

it('rejections too expire by a setting from before a restore only when that is confirmed', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId } = await test.organisation(slug);
  await changeOrganisation(test.pool, by, slug, { rejections_kept_days: 3 });
  await test.pool.query(`insert into restores (target, looks_for_people) values ('a test', true)`);
  await expect(rejectionsKept(test.pool)).rejects.toMatchObject({ code: 'IN001' });
  await test.pool.query('update restores set looks_for_people = false');
  expect(await rejectionsKept(test.pool)).toEqual(new Map([[3, [organisationId]]]));
});

it('an invalid retention in the log from before a restore is not repeated', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  await test.organisation(slug);
  const entry = (audit_id: string, details: object) => ({
    audit_id,
    at: new Date().toISOString(),
    actor: 'test',
    act: 'organisation.retention',
    organisation: slug,
    key_id: null,
    request_id: null,
    imported_at: null,
    details: details as Record<string, unknown>,
  });
  const keptBy = async () => {
    const { rows } = await test.pool.query(
      'select name, interactions_kept_days, receipts_kept_days, rejections_kept_days from organisations where slug = $1',
      [slug],
    );
    return rows[0];
  };
  const before = await keptBy();
  const bad = { interactions_kept_days: -5, receipts_kept_days: 0, rejections_kept_days: 1e6, name: 'x' };
  await repeatActs(test.pool, by, [entry('90000000', bad)]);
  expect(await keptBy()).toEqual(before);
  await repeatActs(test.pool, by, [entry('90000001', { interactions_kept_days: 5 })]);
  expect(await keptBy()).toEqual({ ...before, interactions_kept_days: 5 });
});
