import { isUnswept } from '../erasure/find-erasures.ts';
import { endApiKeyAfter, findListedKey } from '../keys/api-keys.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime, inTransaction } from '../postgres/transactions.ts';
import { keptTypes } from '../retention/kept-days.ts';
import { isTokenThere, revokeToken } from './admin-tokens.ts';
import {
  type AuditEntry,
  audit,
  entriesInLog,
  importEntries,
  noteBackup,
  type Operator,
  reserveIds,
  withLost,
} from './audit-log.ts';
import {
  changeOrganisation,
  deleteOrganisation,
  type OrganisationChange,
  restoreOrganisation,
  revokeKey,
} from './audited-actions.ts';
import type { Saved } from './batches.ts';
import { findOrganisation } from './organisations.ts';
import { keptDaysRange } from './rules.ts';

type LostSettings = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/**
 * `entries` are sorted, oldest first.
 *
 * Retention matters because a setting that was turned off after the restore point would delete data again. Lakes matter
 * because erasures rewrite the files only while a lake is on.
 */
export async function repeatActs(pool: Pool, by: Operator, entries: Saved<AuditEntry>) {
  await reserveIds(pool, entries);
  const lostLimits = await settingsLost(pool, entries, 'organisation.limit');
  const lostRetention = await settingsLost(pool, entries, 'organisation.retention');
  let [revokedKeys, revokedTokens] = [0, 0];
  // These were issued after the restore point and cannot be recovered.
  const lostKeys: string[] = [];
  const lostTokens: string[] = [];
  const suspended = new Map<string, boolean>();
  const lakes = new Map<string, boolean>();
  const deleted = new Map<string, { slug: string; isDeleted: boolean }>();
  for await (const batch of withLost(pool, entries)) {
    for (const { act, key_id, at, details, organisation, organisation_is_lost } of batch) {
      if (act === 'key.issue' && key_id && !(await isThere(pool, key_id))) lostKeys.push(key_id);
      if (act === 'key.rotate' && !(await isThere(pool, String(details.successor))))
        lostKeys.push(String(details.successor));
      if (act === 'key.revoke' && key_id && (await revokeKey(pool, by, key_id))) revokedKeys++;
      const token = String(details.name);
      if (act === 'token.issue' && !(await isTokenThere(pool, token))) lostTokens.push(token);
      if (act === 'token.revoke' && (await revokeToken(pool, by, token))) revokedTokens++;
      if (/^key\.(rotate|end)$/.test(act) && key_id) {
        const nowMs = (await databaseTime(pool)).getTime();
        const graceMs = Date.parse(at) + Number(details.grace_seconds) * 1_000 - nowMs;
        await endKey(pool, by, key_id, Math.max(0, graceMs));
      }
      if (/^organisation\.(delete|restore|remove)$/.test(act)) {
        const isDeleted = act !== 'organisation.restore';
        deleted.set(String(details.organisation_id), { slug: String(details.slug), isDeleted });
      }
      // An organisation of this database may have the slug.
      if (organisation === null || organisation_is_lost) continue;
      if (/^organisation\.(suspend|resume)$/.test(act))
        suspended.set(organisation, act === 'organisation.suspend');
      if (act === 'organisation.lake') lakes.set(organisation, details.lake === true);
    }
  }
  // This must come before the suspensions, because a deleted organisation cannot be suspended.
  await markAgain(pool, by, deleted, false);
  const changes: (readonly [slug: string, change: OrganisationChange])[] = [
    ...[...suspended].map(([slug, isOn]) => [slug, { suspended: isOn }] as const),
    ...[...lostRetention].map(([slug, details]) => [slug, retentionIn(details)] as const),
    ...[...lakes].map(([slug, isOn]) => [slug, { lake: isOn }] as const),
  ];
  for (const [slug, change] of changes)
    if ((await findOrganisation(pool, slug))?.deleted_at === null)
      await changeOrganisation(pool, by, slug, change);
  const deletedOrganisations = await markAgain(pool, by, deleted, true);
  const suspendedOrganisations = [...suspended.values()].filter(Boolean).length;
  return {
    revokedKeys,
    revokedTokens,
    suspendedOrganisations,
    deletedOrganisations,
    retentions: lostRetention.size,
    lakes: lakes.size,
    lostKeys,
    lostTokens,
    lostLimits,
  };
}

/** The period for restoring starts again, even after a removal, which may be why the database was restored. */
async function markAgain(
  pool: Pool,
  by: Operator,
  marked: ReadonlyMap<string, { readonly slug: string; readonly isDeleted: boolean }>,
  isDeleted: boolean,
): Promise<number> {
  let count = 0;
  for (const [organisationId, { slug, isDeleted: isMeant }] of marked) {
    const found = isMeant === isDeleted ? await findOrganisation(pool, slug) : undefined;
    // A slug can be reused once its organisation is gone.
    if (found?.organisation_id !== organisationId || found.removal) continue;
    await (isDeleted ? deleteOrganisation : restoreOrganisation)(pool, by, slug);
    count++;
  }
  return count;
}

/** The oldest entry must be in the restored log. Otherwise the saved log lacks entries, or is another database's. */
export async function reachesBack(pool: Pool, entries: Saved<AuditEntry>): Promise<boolean> {
  for await (const oldest of entries) {
    if ((await entriesInLog(pool, [oldest])).size > 0) return true;
    break;
  }
  const { rowCount } = await pool.query('select from audit_log limit 1');
  return rowCount === 0;
}

/** A transaction that began before a backup of the logs may commit after it. */
const transactionMax = '1 minute';

/** Whether the saved log is older than the last backup that the restored database knows. */
export async function isOlderLog(pool: Pool, entries: Saved<AuditEntry>): Promise<boolean> {
  let newest = 0;
  for await (const { audit_id } of entries) newest = Math.max(newest, Number(audit_id));
  const { rowCount } = await pool.query(
    `select from audit_log a cross join log_backups b
     where a.audit_id > $1 and a.imported_at is null and a.at < b.written_at - interval '${transactionMax}' limit 1`,
    [newest],
  );
  return rowCount === 1;
}

/**
 * The time up to which the database is known to have been restored, if any. In a dump, only its last backup of the logs shows
 * the time. A server without a recovery target may be a promoted standby into which the dump was loaded later.
 */
export async function restoredTime(pool: Pool): Promise<Date | undefined> {
  const replayed = 'case when recovery_target() is not null then pg_last_xact_replay_timestamp() end';
  const { rows } = await pool.query<{ at: string | null }>(
    `select ${isoTime(`greatest(written_at, ${replayed})`)} as at from log_backups`,
  );
  return rows[0]?.at ? new Date(rows[0].at) : undefined;
}

async function settingsLost(
  pool: Pool,
  entries: Saved<AuditEntry>,
  setting: 'organisation.limit' | 'organisation.retention',
): Promise<LostSettings> {
  const lost = new Map<string, Readonly<Record<string, unknown>>>();
  for await (const batch of withLost(pool, entries)) {
    const set = batch.filter(({ act, organisation_is_lost }) => act === setting && !organisation_is_lost);
    const kept = await entriesInLog(pool, set);
    // A later value replaces an earlier one.
    for (const { audit_id, organisation, details } of set)
      if (organisation !== null && !kept.has(String(audit_id)))
        lost.set(organisation, { ...lost.get(organisation), ...details });
  }
  return lost;
}

/** The file may have been edited. It must not change anything else, or set a retention below one day. */
function retentionIn(details: Readonly<Record<string, unknown>>): OrganisationChange {
  const fields = keptTypes.map((type) => `${type}_kept_days`);
  const isSetting = ([name, days]: [string, unknown]) =>
    fields.includes(name) &&
    (days === null ||
      (Number.isInteger(days) &&
        Number(days) >= keptDaysRange.minimum &&
        Number(days) <= keptDaysRange.maximum));
  return Object.fromEntries(Object.entries(details).filter(isSetting));
}

export async function listRetentions(pool: Pool): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select slug, interactions_kept_days, receipts_kept_days, rejections_kept_days from organisations
     where num_nonnulls(interactions_kept_days, receipts_kept_days, rejections_kept_days) > 0
     order by slug limit $1`,
    [limits.listedPerPageMax],
  );
  return rows;
}

export async function listLimited(pool: Pool): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select slug, requests_per_second_max, interactions_per_second_max, records_per_second_max, bytes_in_flight_max,
       records_stored_max, bytes_stored_max
     from organisations
     where num_nonnulls(requests_per_second_max, interactions_per_second_max, records_per_second_max, bytes_in_flight_max,
       records_stored_max, bytes_stored_max) > 0
     order by slug limit $1`,
    [limits.listedPerPageMax],
  );
  return rows;
}

async function isThere(pool: Pool, keyId: string): Promise<boolean> {
  return inTransaction(pool, async (client) => (await findListedKey(client, keyId)) !== undefined);
}

async function endKey(pool: Pool, by: Operator, keyId: string, graceMs: number): Promise<void> {
  await inTransaction(pool, async (client) => {
    const ended = await endApiKeyAfter(client, keyId, graceMs);
    if (!ended) return;
    const details = { grace_seconds: Math.round(graceMs / 1_000) };
    await audit(client, by, 'key.end', details, { organisationId: ended.organisationId, keyId });
  });
}

/** For restores after which it is unknown which keys and tokens had been revoked. */
export async function revokeAllKeys(pool: Pool, by: Operator): Promise<{ keys: number; tokens: number }> {
  return inTransaction(pool, async (client) => {
    // Write one audit entry per key, so that this database's log can be replayed as well.
    const { rowCount } = await client.query(
      `with revoked as (
         update api_keys set revoked_at = now() where revoked_at is null returning organisation_id, key_id
       )
       insert into audit_log (actor, act, organisation_id, key_id, details)
       select $1, 'key.revoke', organisation_id, key_id, '{}' from revoked`,
      [by.actor],
    );
    const { rowCount: tokens } = await client.query(
      `with revoked as (update admin_tokens set revoked_at = now() where revoked_at is null returning name)
       insert into audit_log (actor, act, details) select $1, 'token.revoke', jsonb_build_object('name', name) from revoked`,
      [by.actor],
    );
    return { keys: rowCount ?? 0, tokens: tokens ?? 0 };
  });
}

async function resetLostState(client: Client): Promise<void> {
  // Readers may have copied changes that are lost. Skip more numbers than any reader can have read, so that every cursor
  // is invalid and no number is assigned again.
  await client.query(
    `update change_counters
     set last_number = last_number + 1000000000, forgotten_number = last_number + 1000000000`,
  );
  // People who signed out after the restore point would be signed in again, and used links would work again.
  for (const table of ['console_sessions', 'console_links', 'operator_sessions'])
    await client.query(`delete from ${table}`);
  // A deleted organisation may have been restored after the restore point, or may be the reason for the restore.
  await client.query(
    'update organisations set deleted_at = now() where deleted_at is not null and removal_started_at is null',
  );
  // The files of the lakes may contain data that the database has lost.
  await client.query('update lake_progress set removing_since = now() where removing_since is null');
}

/**
 * Keys work again immediately or, if it returns `looksForPeople`, once the people of repeated erasures are hidden again. The
 * files at the returned `place` belong to the database before the restore.
 */
export async function confirmRestore(
  pool: Pool,
  by: Operator,
  {
    entries,
    withoutErasures,
    ledgerWrittenAt,
  }: { entries: Saved<AuditEntry>; withoutErasures: boolean; ledgerWrittenAt?: Date | undefined },
) {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ target: string }>(
      `insert into restores (target) select recovery_target() where recovery_target() is not null
       on conflict do nothing returning target`,
    );
    // An earlier run that was interrupted may have repeated erasures too.
    const { rowCount: unidentified } = await client.query(
      `select erasure_id from erasures where ${isUnswept} and step = 'identify customers' limit 1`,
    );
    const looksForPeople = unidentified !== 0;
    if (looksForPeople) {
      // A restored dump has no recovery target.
      const target = `coalesce(recovery_target(), 'a dump')`;
      await client.query(`insert into restores (target) values (${target}) on conflict do nothing`);
      await client.query(`update restores set looks_for_people = true where target = ${target}`);
    }
    await resetLostState(client);
    const imported = await importEntries(client, entries);
    // This database has all that the ledger contains, so backups may replace it.
    if (ledgerWrittenAt) await noteBackup(client, ledgerWrittenAt);
    const details = { target: rows[0]?.target ?? null, without_erasures: withoutErasures };
    await audit(client, by, 'restore.confirm', details);
    // The new identity keeps this database from writing to the lakes of the original, which may still be running. The
    // fingerprint is the original's.
    const { rows: places } = await client.query<{ url: string; fingerprint: string }>(
      'update lake_place set database_id = gen_random_uuid() returning url, fingerprint',
    );
    return { imported, looksForPeople, place: places[0]?.url ? places[0] : undefined };
  });
}

/** A new database contains no keys from before a restore, even if its server's settings still specify a recovery target. */
export async function noteNew(client: Client): Promise<void> {
  await client.query(
    `insert into restores (target) select recovery_target() where recovery_target() is not null
     on conflict do nothing`,
  );
}
