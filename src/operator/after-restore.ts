import { endApiKeyAfter, findListedKey } from '../keys/api-keys.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { keptTypes } from '../retention/kept-days.ts';
import { isTokenThere, revokeToken } from './admin-tokens.ts';
import { type AuditEntry, audit, type Operator } from './audit-log.ts';
import {
  changeOrganisation,
  deleteOrganisation,
  type OrganisationChange,
  restoreOrganisation,
  revokeKey,
} from './audited-actions.ts';
import { findOrganisation } from './organisations.ts';
import { keptDaysRange } from './rules.ts';

export interface Repeated {
  readonly revokedKeys: number;
  readonly suspendedOrganisations: number;
  readonly deletedOrganisations: number;
  readonly revokedTokens: number;
  /** Keys and tokens issued after the restored moment: they cannot be recovered. */
  readonly lostKeys: readonly string[];
  readonly lostTokens: readonly string[];
  /** Limits set after the restored moment, by organisation: they are lost with the restore. */
  readonly lostLimits: LostSettings;
  /** How many organisations had their retention changed after the restored moment. */
  readonly retentions: number;
}

type LostSettings = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/**
 * Repeats the revocations, rotations, suspensions, deletions and retentions in the audit log of the database before the restore.
 * Those that the restored database already knows change nothing. By a retention that was ended since, data would be deleted.
 */
export async function repeatActs(
  pool: Pool,
  by: Operator,
  entries: readonly AuditEntry[],
): Promise<Repeated> {
  // First: what follows adds entries, under ids that the old log has too.
  const lostLimits = await settingsLost(pool, entries, 'organisation.limit');
  const lostRetention = await settingsLost(pool, entries, 'organisation.retention');
  let [revokedKeys, revokedTokens] = [0, 0];
  const lostKeys: string[] = [];
  const lostTokens: string[] = [];
  const suspended = new Map<string, boolean>();
  const deleted = new Map<string, { slug: string; isDeleted: boolean }>();
  // The log lists the newest first.
  for (const { act, key_id, organisation, at, details } of entries.toReversed()) {
    if (act === 'key.issue' && key_id && !(await isThere(pool, key_id))) lostKeys.push(key_id);
    if (act === 'key.rotate' && !(await isThere(pool, String(details.successor))))
      lostKeys.push(String(details.successor));
    if (act === 'key.revoke' && key_id && (await revokeKey(pool, by, key_id))) revokedKeys++;
    const token = String(details.name);
    if (act === 'token.issue' && !(await isTokenThere(pool, token))) lostTokens.push(token);
    if (act === 'token.revoke' && (await revokeToken(pool, by, token))) revokedTokens++;
    if (/^key\.(rotate|end)$/.test(act) && key_id) {
      const graceMs = Date.parse(at) + Number(details.grace_seconds) * 1_000 - Date.now();
      await endKey(pool, by, key_id, Math.max(0, graceMs));
    }
    if (organisation && /^organisation\.(suspend|resume)$/.test(act))
      suspended.set(organisation, act === 'organisation.suspend');
    if (/^organisation\.(delete|restore|remove)$/.test(act)) {
      const isDeleted = act !== 'organisation.restore';
      deleted.set(String(details.organisation_id), { slug: String(details.slug), isDeleted });
    }
  }
  // What is deleted cannot be suspended.
  await markAgain(pool, by, deleted, false);
  for (const [slug, isSuspended] of suspended)
    if ((await findOrganisation(pool, slug))?.deleted_at === null)
      await changeOrganisation(pool, by, slug, { suspended: isSuspended });
  for (const [slug, retention] of lostRetention)
    if ((await findOrganisation(pool, slug))?.deleted_at === null)
      await changeOrganisation(pool, by, slug, retentionIn(retention));
  const deletedOrganisations = await markAgain(pool, by, deleted, true);
  const suspendedOrganisations = [...suspended.values()].filter(Boolean).length;
  const lost = { lostKeys, lostTokens, lostLimits };
  const retentions = lostRetention.size;
  return { revokedKeys, revokedTokens, suspendedOrganisations, deletedOrganisations, retentions, ...lost };
}

/**
 * Deletes or restores organisations again. Those that are deleted can be restored for the whole time from now on, even if they had been
 * removed: bringing one back may be what the restore is for. Returns how many there are.
 */
async function markAgain(
  pool: Pool,
  by: Operator,
  marked: ReadonlyMap<string, { readonly slug: string; readonly isDeleted: boolean }>,
  isDeleted: boolean,
): Promise<number> {
  let count = 0;
  for (const [organisationId, { slug, isDeleted: isMeant }] of marked) {
    const found = isMeant === isDeleted ? await findOrganisation(pool, slug) : undefined;
    // A slug can be given again when its organisation is gone.
    if (found?.organisation_id !== organisationId || found.removal) continue;
    await (isDeleted ? deleteOrganisation : restoreOrganisation)(pool, by, slug);
    count++;
  }
  return count;
}

/**
 * Whether the log begins before the restored moment: its oldest entry must be in the restored log too. Otherwise it
 * lacks entries, or belongs to another database.
 */
export async function reachesBack(pool: Pool, entries: readonly AuditEntry[]): Promise<boolean> {
  const { audit_id, act } = entries.at(-1) ?? { audit_id: null, act: null };
  const { rows } = await pool.query<{ reaches: boolean }>(
    `select exists (select from audit_log where audit_id = $1 and act = $2)
       or not exists (select from audit_log) as reaches`,
    [audit_id, act],
  );
  return rows[0]?.reaches ?? false;
}

async function settingsLost(
  pool: Pool,
  entries: readonly AuditEntry[],
  setting: 'organisation.limit' | 'organisation.retention',
): Promise<LostSettings> {
  const set = entries.filter(({ act }) => act === setting);
  const { rows } = await pool.query<{ audit_id: string }>(
    'select audit_id from audit_log where act = $2 and audit_id = any($1::bigint[])',
    [set.map(({ audit_id }) => audit_id), setting],
  );
  const kept = new Set(rows.map(({ audit_id }) => String(audit_id)));
  const lost = new Map<string, Readonly<Record<string, unknown>>>();
  // The newest value is the last.
  for (const { audit_id, organisation, details } of set.toReversed())
    if (organisation !== null && !kept.has(String(audit_id)))
      lost.set(organisation, { ...lost.get(organisation), ...details });
  return lost;
}

/** The file may have been edited: nothing else of an organisation is changed by it, and nothing is kept for less than a day. */
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

/** Organisations with a retention. */
export async function listRetentions(pool: Pool): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select slug, interactions_kept_days, receipts_kept_days, rejections_kept_days from organisations
     where num_nonnulls(interactions_kept_days, receipts_kept_days, rejections_kept_days) > 0
     order by slug limit $1`,
    [limits.listedPerPageMax],
  );
  return rows;
}

/** Organisations with limits of their own. */
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

/** For a restore where it is unknown which keys and tokens were revoked meanwhile. */
export async function revokeAllKeys(pool: Pool, by: Operator): Promise<{ keys: number; tokens: number }> {
  return inTransaction(pool, async (client) => {
    // One audit entry per key, so that this database's log can be repeated as well.
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

/**
 * Makes every cursor of the change feed too old: readers may have copied what was lost, and its numbers are about to be
 * given again. Nobody can have read so many changes as are passed over.
 */
async function forgetCursors(client: Client): Promise<void> {
  await client.query(
    `update change_counters
     set last_number = last_number + 1000000000, forgotten_number = last_number + 1000000000`,
  );
}

/** People who signed out after the restored moment would be signed in again, and links that were used work again. */
async function endSessions(client: Client): Promise<void> {
  for (const table of ['console_sessions', 'console_links', 'operator_sessions'])
    await client.query(`delete from ${table}`);
}

/** Organisations may have been restored after the restored moment, or be what the restore is for: their time begins again. */
async function keepDeleted(client: Client): Promise<void> {
  await client.query(
    'update organisations set deleted_at = now() where deleted_at is not null and removal_started_at is null',
  );
}

/** From now on the database gives out keys again, or when the people who had been erased are hidden again. */
export async function confirmRestore(pool: Pool, by: Operator, looksForPeople: boolean): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ target: string }>(
      `insert into restores (target) select recovery_target() where recovery_target() is not null
       on conflict do nothing returning target`,
    );
    if (looksForPeople) {
      // A dump that was restored has no target.
      const target = `coalesce(recovery_target(), 'a dump')`;
      await client.query(`insert into restores (target) values (${target}) on conflict do nothing`);
      await client.query(`update restores set looks_for_people = true where target = ${target}`);
    }
    await forgetCursors(client);
    await endSessions(client);
    await keepDeleted(client);
    await audit(client, by, 'restore.confirm', { target: rows[0]?.target ?? null });
  });
}

/**
 * A database that was just made has no keys of an earlier time, although the settings of its server may still name the target of a
 * restore.
 */
export async function noteNew(client: Client): Promise<void> {
  await client.query(
    `insert into restores (target) select recovery_target() where recovery_target() is not null
     on conflict do nothing`,
  );
}
