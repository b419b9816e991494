// @module-tag full

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { ConsoleSessions } from '../../src/keys/console-sessions.ts';
import { confirmRestore, repeatActs } from '../../src/operator/after-restore.ts';
import { listAuditEntries } from '../../src/operator/audit-log.ts';
import {
  changeOrganisation,
  createOrganisation,
  deleteOrganisation,
  issueConsoleLink,
  issueKey,
  restoreOrganisation,
  rotateKey,
} from '../../src/operator/audited-actions.ts';
import { onCoordinator } from '../../src/operator/distribute.ts';
import { findOrganisation } from '../../src/operator/organisations.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { UsageKeeper } from '../../src/quotas/measure-usage.ts';
import { removalLimits } from '../../src/removal/limits.ts';
import { keepStep } from '../../src/reports/keep-report.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { removeDeleted } from '../support/jobs.ts';
import { many } from '../support/new-records.ts';
import { fillOrganisation, organisationTables, rowsOf } from '../support/organisation-rows.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Tests organisations that the serving role deletes, restores and removes. */

let test: TestApp;
let owner: pg.Client;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  owner = new pg.Client({ connectionString: test.databaseUrl });
  await owner.connect();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await owner.end();
  await test.close();
});

const by = { actor: 'test' };
/** More rows than one step removes. */
const several = 2 * removalLimits.rowsPerStep + 500;
/** Tables with different primary keys: a single column, several columns, a key in a partition, and a bytea column. */
const large = {
  transactions: several,
  report_interactions: several,
  report_visits: several,
  report_sums: several,
  interactions: several,
  suppressions: several,
};

/** Creates an organisation with rows in every table, a rotated key, a console link and a session. */
async function newOrganisation(rows: Readonly<Record<string, number>> = {}) {
  const slug = `o-${randomUUID()}`;
  const { organisationId, key } = await test.organisation(slug);
  const wanted = { organisationId, permissions: ['data:read'], label: `label of ${slug}`, expiresAt: null };
  const old = await issueKey(test.pool, by, wanted);
  const successor = await rotateKey(test.pool, by, old.key_id, { graceMs: 1_000, expiresAt: null });
  const expiresAt = new Date(Date.now() + 3_600_000);
  const link = await issueConsoleLink(test.pool, by, { organisationId, isReadOnly: false, expiresAt });
  await new ConsoleSessions(serving).begin(old.key_id);
  await fillOrganisation(owner, organisationId, rows);
  await owner.query(`insert into quota_usage (organisation_id, records, row_sizes) values ($1, 1, '{}')`, [
    organisationId,
  ]);
  const keyIds = [old.key_id, successor?.key_id ?? '', link.key_id];
  return { slug, organisationId, key, traces: [organisationId, slug, ...keyIds] };
}

async function deleteLongAgo(slug: string, days = 31): Promise<void> {
  await deleteOrganisation(test.pool, by, slug);
  await owner.query(
    'update organisations set deleted_at = now() - make_interval(days => $2) where slug = $1',
    [slug, days],
  );
}

async function remove(slug: string): Promise<void> {
  // `intake-server lake` does this when no file is left. lake-endings.test.ts tests it with files.
  await owner.query(
    'delete from lake_progress where organisation_id = (select organisation_id from organisations where slug = $1)',
    [slug],
  );
  while (await findOrganisation(test.pool, slug)) await removeDeleted(serving);
}

const entriesOf = async (slug: string) =>
  (
    await owner.query<{ act: string; details: Record<string, unknown> }>(
      `select act, details from audit_log where details->>'slug' = $1 order by audit_id`,
      [slug],
    )
  ).rows;

describe('a removed organisation', () => {
  it('is no longer in any table, and another organisation keeps its data', async () => {
    const gone = await newOrganisation(large);
    const other = await newOrganisation({ transactions: several });
    const before = await rowsOf(owner, gone.organisationId);
    // A table without rows would prove nothing.
    expect(Object.entries(before).filter(([, { count }]) => count === 0)).toEqual([]);
    expect(before).toMatchObject({ transactions: { count: several }, report_visits: { count: several } });
    const untouched = await rowsOf(owner, other.organisationId);
    await owner.query('update organisations set name = $2 where slug = $1', [
      gone.slug,
      `name of ${gone.slug}`,
    ]);
    await deleteLongAgo(gone.slug);
    await remove(gone.slug);
    expect(await tablesWith(owner, gone.traces)).toEqual({ audit_log: 2 });
    const [deleted, removed] = await entriesOf(gone.slug);
    const { slug, organisationId } = gone;
    expect(deleted).toEqual({
      act: 'organisation.delete',
      details: { slug, organisation_id: organisationId },
    });
    expect(removed).toMatchObject({
      act: 'organisation.remove',
      details: { slug, organisation_id: organisationId, rows: { transactions: several } },
    });
    const counts = removed?.details.rows as Record<string, number>;
    const tables = await organisationTables(owner);
    expect(Object.keys(counts).toSorted()).toEqual(tables);
    for (const table of tables.filter((name) => !['erasures', 'lake_progress'].includes(name)))
      expect([table, counts[table]]).toEqual([table, before[table]?.count]);
    expect(await rowsOf(owner, other.organisationId)).toEqual(untouched);
    // The audit entries and their times are kept, but without the organisation.
    const { rows: emptied } = await owner.query(
      `select act from audit_log where organisation_id is null and details = '{}' and key_id is null`,
    );
    expect(emptied.map(({ act }) => act)).toEqual(
      expect.arrayContaining(['organisation.create', 'key.issue', 'key.rotate']),
    );
  });

  it('frees its slug for another, but not before', async () => {
    const { slug, organisationId } = await newOrganisation();
    await deleteLongAgo(slug);
    expect(await createOrganisation(test.pool, by, slug, slug)).toBeUndefined();
    await remove(slug);
    const created = await createOrganisation(test.pool, by, slug, slug);
    expect(created).toMatchObject({ slug, deleted_at: null, removal: null });
    expect(created?.organisation_id).not.toBe(organisationId);
  });

  it('is removed once by two processes', async () => {
    const { slug } = await newOrganisation({ transactions: several });
    await deleteLongAgo(slug);
    await Promise.all(many(2, () => remove(slug)));
    expect(await entriesOf(slug)).toMatchObject([
      { act: 'organisation.delete' },
      { act: 'organisation.remove', details: { rows: { transactions: several } } },
    ]);
  });

  it('shows its progress, and waits for earlier transactions', async () => {
    const { slug, organisationId } = await newOrganisation({ transactions: several });
    await deleteLongAgo(slug);
    const late = new pg.Client({ connectionString: servingUrl(test.databaseUrl) });
    await late.connect();
    await late.query('begin');
    await late.query('select from tenants where organisation_id = $1', [organisationId]);
    const stopping = new AbortController();
    const running = removeDeleted(serving, stopping.signal);
    const progress = async () => (await findOrganisation(test.pool, slug))?.removal;
    await expect.poll(progress).toEqual({ started_at: expect.any(String), table: null, rows: 0 });
    await late.query(
      `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, is_deleted)
       values ($1, gen_random_uuid(), gen_random_uuid(), 'GB', 1, 1, false)`,
      [organisationId],
    );
    expect(await progress()).toMatchObject({ rows: 0 });
    await late.query('commit');
    await late.end();
    await expect.poll(async () => (await progress())?.rows ?? 0).toBeGreaterThan(0);
    stopping.abort();
    await running;
    expect(await progress()).toMatchObject({ table: expect.any(String) });
    await remove(slug);
    expect(await entriesOf(slug)).toMatchObject([
      { act: 'organisation.delete' },
      { act: 'organisation.remove', details: { rows: { transactions: several + 1 } } },
    ]);
  });

  it('gets no row of a report that was about to be counted', async () => {
    const { slug, organisationId, traces } = await newOrganisation();
    await deleteLongAgo(slug);
    await remove(slug);
    await expect(keepStep(serving, organisationId)).rejects.toThrow();
    expect(await tablesWith(owner, traces)).toEqual({ audit_log: 2 });
  });

  it('gets no row from expiry, or from its quota, during the removal', async () => {
    const { slug, organisationId, traces } = await newOrganisation();
    await owner.query(
      'update organisations set interactions_kept_days = 1, receipts_kept_days = 1, records_stored_max = 1 where slug = $1',
      [slug],
    );
    // Everything has expired, and a process that has already read this is about to delete the rows.
    await owner.query(
      `update retention_progress set expired_below = 'ffffffff-ffff-ffff-ffff-ffffffffffff' where organisation_id = $1`,
      [organisationId],
    );
    await deleteLongAgo(slug);
    await serving.query('select begin_removal($1, 30)', [organisationId]);
    const before = await rowsOf(owner, organisationId);
    const expire = 'select expire_interactions($1, $2, 10) as has_more';
    expect((await serving.query(expire, [organisationId, randomUUID()])).rows).toEqual([{ has_more: false }]);
    expect(await rowsOf(owner, organisationId)).toEqual(before);
    for (const table of ['retention_progress', 'quota_usage'])
      await owner.query(`delete from ${table} where organisation_id = $1`, [organisationId]);
    await serving.query('select begin_expiry(null)');
    await new UsageKeeper(serving).run();
    const { retention_progress, quota_usage } = await tablesWith(owner, [organisationId]);
    expect({ retention_progress, quota_usage }).toEqual({});
    await remove(slug);
    expect(await tablesWith(owner, traces)).toEqual({ audit_log: 2 });
  });

  it('has no erasure or other job from the beginning of its removal, and its own job until the end', async () => {
    const { slug, organisationId, traces } = await newOrganisation();
    await owner.query(
      `insert into jobs (organisation_id, kind, step, turn, not_before, failures, since)
       select $1, kind, 'start', 0, now(), 0, now() from unnest(array['erasures', 'purging', 'removals']) as k(kind)`,
      [organisationId],
    );
    await owner.query(`update erasures set state = 'sweeping' where organisation_id = $1`, [organisationId]);
    await deleteLongAgo(slug);
    await serving.query('select begin_removal($1, 30)', [organisationId]);
    const { rows } = await owner.query('select kind from jobs where organisation_id = $1', [organisationId]);
    expect(rows).toEqual([{ kind: 'removals' }]);
    expect((await tablesWith(owner, [organisationId])).erasures).toBeUndefined();
    await owner.query(`update jobs set step = 'begin' where organisation_id = $1`, [organisationId]);
    await remove(slug);
    expect(await tablesWith(owner, traces)).toEqual({ audit_log: 2 });
  });

  it('is removed step by step only from tables that a cluster distributes', async () => {
    const tables = await organisationTables(owner);
    expect(tables.filter((table) => onCoordinator.includes(table))).toEqual([]);
  });
});

describe('a deleted organisation', () => {
  it('is restored unchanged, row by row', async () => {
    const { slug, organisationId } = await newOrganisation();
    await owner.query('update organisations set suspended_at = now() where slug = $1', [slug]);
    const before = { rows: await rowsOf(owner, organisationId), of: await findOrganisation(test.pool, slug) };
    await deleteLongAgo(slug, 29);
    await removeDeleted(serving);
    expect(await findOrganisation(test.pool, slug)).toMatchObject({ removal: null });
    const restored = await restoreOrganisation(test.pool, by, slug);
    expect(restored).toEqual(before.of);
    expect(await rowsOf(owner, organisationId)).toEqual(before.rows);
    expect((await entriesOf(slug)).map(({ act }) => act)).toEqual([
      'organisation.create',
      'organisation.delete',
      'organisation.restore',
    ]);
  });

  it('can neither be restored after its removal has started, nor be given keys', async () => {
    const { slug, organisationId } = await newOrganisation();
    await deleteLongAgo(slug);
    const wanted = { organisationId, permissions: ['data:read'], label: null, expiresAt: null };
    await expect(issueKey(test.pool, by, wanted)).rejects.toMatchObject({ code: 'organisation_is_deleted' });
    await serving.query('select begin_removal($1, 30)', [organisationId]);
    await expect(restoreOrganisation(test.pool, by, slug)).rejects.toMatchObject({ code: 'removal_begun' });
    await remove(slug);
  });

  it('stays in a restored database until that is confirmed, because it may have been restored too', async () => {
    const { slug, organisationId } = await newOrganisation();
    await deleteLongAgo(slug);
    await owner.query(`insert into restores (target, looks_for_people) values ('a test', true)`);
    const begin = 'select begin_removal($1, 30)';
    await expect(serving.query(begin, [organisationId])).rejects.toMatchObject({ code: 'IN001' });
    expect(await findOrganisation(test.pool, slug)).toMatchObject({ removal: null });
    await owner.query('update restores set looks_for_people = false');
    await remove(slug);
  });
});

it('deletions and restorations in the log are repeated after a restore of the database', async () => {
  const [deleted, restored] = [await newOrganisation(), await newOrganisation()];
  const began = new Date();
  await deleteOrganisation(test.pool, by, deleted.slug);
  await deleteOrganisation(test.pool, by, restored.slug);
  await restoreOrganisation(test.pool, by, restored.slug);
  const log = (await listAuditEntries(test.pool, {}, 1_000))
    .filter(({ at }) => new Date(at) >= began)
    .toReversed();
  // Recreate the state that a backup would restore: one organisation was not deleted yet, and the other had been deleted
  // but not restored yet.
  await owner.query('update organisations set deleted_at = null where slug = $1', [deleted.slug]);
  await owner.query(`update organisations set deleted_at = now() - interval '31 days' where slug = $1`, [
    restored.slug,
  ]);
  expect(await repeatActs(test.pool, by, log)).toMatchObject({ deletedOrganisations: 1 });
  const deletedAt = (await findOrganisation(test.pool, deleted.slug))?.deleted_at as string;
  expect(Date.now() - Date.parse(deletedAt)).toBeLessThan(60_000);
  expect(await findOrganisation(test.pool, restored.slug)).toMatchObject({ deleted_at: null });
});

it('settings of an organisation that is lost do not reach the one that had its slug before', async () => {
  const [reused, control] = [await newOrganisation(), await newOrganisation()];
  const began = new Date();
  const settings = { suspended: true, lake: true, interactions_kept_days: 1, bytes_in_flight_max: 2_000_000 };
  for (const { slug } of [reused, control]) await changeOrganisation(test.pool, by, slug, settings);
  const isNew = ({ at }: { at: string }) => new Date(at) >= began;
  const written = (await listAuditEntries(test.pool, {}, 1_000)).filter(isNew).toReversed();
  for (const { slug } of [reused, control])
    await changeOrganisation(test.pool, by, slug, {
      suspended: false,
      lake: false,
      interactions_kept_days: null,
      bytes_in_flight_max: null,
    });
  // The same entries with other ids, as if they had been made after the restored time.
  const idOf = (audit_id: string) => String(Number(audit_id) + 10_000_000);
  const [first] = written;
  const audit_id = String(Number(idOf(first!.audit_id)) - 1);
  const creation = {
    ...first!,
    audit_id,
    act: 'organisation.create',
    organisation: reused.slug,
    details: {},
  };
  const log = [creation, ...written.map((entry) => ({ ...entry, audit_id: idOf(entry.audit_id) }))];
  const stateOf = async ({ slug }: { slug: string }) => {
    const { rows } = await owner.query(
      'select suspended_at is not null as suspended, lake, interactions_kept_days as days from organisations where slug = $1',
      [slug],
    );
    return rows[0];
  };
  // The second run follows one that has imported the creation.
  for (const run of [1, 2]) {
    const { lostLimits, ...done } = await repeatActs(test.pool, by, log);
    if (run === 1) expect([...lostLimits.keys()]).toEqual([control.slug]);
    expect(done).toMatchObject({ suspendedOrganisations: 1, lakes: 1 });
    expect(await stateOf(control)).toEqual({ suspended: true, lake: true, days: 1 });
    expect(await stateOf(reused)).toEqual({ suspended: false, lake: false, days: null });
    await confirmRestore(test.pool, by, { entries: log, withoutErasures: true });
  }
});

it('an organisation deleted before a restored moment can be restored for the whole period again', async () => {
  const { slug } = await newOrganisation();
  await deleteLongAgo(slug);
  await confirmRestore(test.pool, by, { entries: [], withoutErasures: true });
  await removeDeleted(serving);
  expect(await restoreOrganisation(test.pool, by, slug)).toMatchObject({ deleted_at: null, removal: null });
});

describe('the serving role', () => {
  it('cannot remove anything of an organisation that the operator has not deleted', async () => {
    const { slug, organisationId } = await newOrganisation();
    const before = await rowsOf(owner, organisationId);
    const begin = 'select begin_removal($1, 30) as is_begun';
    expect((await serving.query(begin, [organisationId])).rows).toEqual([{ is_begun: false }]);
    await deleteLongAgo(slug, 29);
    expect((await serving.query(begin, [organisationId])).rows).toEqual([{ is_begun: false }]);
    await expect(serving.query('select begin_removal($1, 0)', [organisationId])).rejects.toThrow('days_kept');
    const removed = await serving.query(`select remove_rows($1, 0, 'tags', 10) as removed`, [organisationId]);
    expect(removed.rows).toEqual([{ removed: null }]);
    await serving.query('select finish_removal($1)', [organisationId]);
    expect(await rowsOf(owner, organisationId)).toEqual(before);
    await restoreOrganisation(test.pool, by, slug);
  });

  it('cannot end a removal before every table is empty, nor remove its traces elsewhere', async () => {
    const { slug, organisationId } = await newOrganisation();
    await deleteLongAgo(slug);
    await serving.query('select begin_removal($1, 30)', [organisationId]);
    await expect(serving.query('select finish_removal($1)', [organisationId])).rejects.toThrow('has rows');
    for (const table of ['organisations', 'api_keys', 'audit_log', 'admin_tokens']) {
      const rowsIn = async () => (await owner.query(`select from ${table}`)).rowCount;
      const before = await rowsIn();
      const outcome = await serving.query('select remove_rows($1, 0, $2, 10)', [organisationId, table]).then(
        ({ rows }) => rows[0].remove_rows,
        ({ message }) => message,
      );
      // On Citus, the node that runs the function does not have these tables.
      expect([null, `not a table with data of organisations: ${table}`]).toContain(outcome);
      expect(await rowsIn()).toBe(before);
    }
    await remove(slug);
  });
});
