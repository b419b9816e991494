// keys/: authentication and authorisation with API keys, the key cache, permissions, and signed cursors.

import type { OrganisationQuota, QuotaUsage } from '../admission/quota.ts';
import type { OrganisationLimits } from '../admission/request-limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';

export interface StoredKey extends OrganisationLimits, OrganisationQuota, QuotaUsage {
  readonly organisation_id: string;
  readonly key_sha256: Buffer;
  readonly permissions: readonly string[];
  /** Null for a regular key. */
  readonly browser_origins: readonly string[] | null;
  readonly revoked: boolean;
  /** Null if the key never expires. PostgreSQL's clock determines the value, so other clocks do not matter. */
  readonly ends_in_ms: number | null;
  readonly suspended: boolean;
  readonly deleted: boolean;
}

export async function findApiKey(pool: Pool, keyId: string): Promise<StoredKey | undefined> {
  const { rows } = await pool.query<StoredKey>({
    name: 'find api key',
    // `offset 0` stops PostgreSQL from joining all organisations with the 1,000 rows that it estimates for a function.
    text: `
      select k.*, q.* from look_up_key($1) k cross join lateral (
        select o.records_stored_max::float8 as records_stored_max, o.bytes_stored_max::float8 as bytes_stored_max,
          u.records::float8 as records_stored, u.bytes::float8 as bytes_stored
        from organisations o left join quota_usage u using (organisation_id)
        where o.organisation_id = k.organisation_id offset 0) q`,
    values: [keyId],
  });
  return rows[0];
}

export interface KeyChanges {
  /** The `since` value to pass to the next poll. */
  readonly upTo: string;
  /** The start time of the server that responded. A server with another one may lack the latest commits. */
  readonly server: string;
  /** The last transaction that changed each key or organisation, by id. */
  readonly keys: ReadonlyMap<string, string>;
  readonly organisations: ReadonlyMap<string, string>;
}

/**
 * Returns the changes made by transactions that had not ended when `since` was issued. Each change is reported at least
 * once, in whatever order transactions commit. It is reported again as long as any transaction that started before it
 * is still running. If `since` is null, no changes are returned.
 */
export async function changedApiKeys(pool: Pool, since: string | null): Promise<KeyChanges> {
  const { rows } = await pool.query<{
    up_to: string;
    server: string;
    key_id: string | null;
    organisation_id: string | null;
    changed_in: string;
  }>({
    name: 'changed api keys',
    text: `
      select pg_snapshot_xmin(pg_current_snapshot())::text as up_to,
        pg_postmaster_start_time()::text as server, c.key_id, c.organisation_id,
        c.changed_in::text as changed_in
      from (select) as once left join changed_api_keys($1::xid8) c on true
      where keys_can_be_trusted()`,
    values: [since],
  });
  return {
    upTo: rows[0]?.up_to as string,
    server: rows[0]?.server as string,
    keys: new Map(rows.flatMap(({ key_id, changed_in }) => (key_id ? [[key_id, changed_in]] : []))),
    organisations: new Map(
      rows.flatMap(({ organisation_id, changed_in }) =>
        organisation_id ? [[organisation_id, changed_in]] : [],
      ),
    ),
  };
}

export async function countExpiringKeys(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ keys: number }>('select keys from keys_expiring');
  return rows[0]?.keys ?? 0;
}

export async function noteApiKeysUsed(pool: Pool, keyIds: readonly string[]): Promise<void> {
  await pool.query('select note_api_keys_used($1)', [keyIds]);
}

export interface NewApiKey {
  readonly keyId: string;
  readonly organisationId: string;
  readonly keySha256: Buffer;
  readonly permissions: readonly string[];
  /** Absent or null for a regular key. A trigger copies a key's origins to its successor. */
  readonly browserOrigins?: readonly string[] | null;
  readonly label: string | null;
  readonly expiresAt: Date | null;
  readonly createdBy: string;
  readonly successorOf: string | null;
}

export async function insertApiKey(client: Client, key: NewApiKey): Promise<void> {
  await client.query(
    `insert into api_keys (key_id, organisation_id, key_sha256, permissions, browser_origins, label, expires_at, created_by, successor_of)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      key.keyId,
      key.organisationId,
      key.keySha256,
      key.permissions,
      key.browserOrigins ?? null,
      key.label,
      key.expiresAt,
      key.createdBy,
      key.successorOf,
    ],
  );
}

export interface ListedKey {
  readonly key_id: string;
  readonly organisation: string;
  readonly permissions: readonly string[];
  readonly browser: boolean;
  readonly origins: readonly string[];
  /** Whether the key belongs to a link to the console, so that nobody can send it. */
  readonly link: boolean;
  readonly label: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly successor_of: string | null;
}

const listed = (keys: string) => `
  select k.key_id, o.slug as organisation, k.permissions, k.browser_origins is not null as browser,
    coalesce(k.browser_origins, '{}') as origins, k.key_sha256 = decode(repeat('00', 32), 'hex') as link, k.label, ${isoTime('k.created_at')} as created_at, k.created_by,
    ${isoTime('k.last_used_at')} as last_used_at, ${isoTime('k.expires_at')} as expires_at,
    ${isoTime('k.revoked_at')} as revoked_at, k.successor_of
  from (${keys}) k join organisations o using (organisation_id)`;

export async function findListedKey(client: Client, keyId: string): Promise<ListedKey | undefined> {
  const { rows } = await client.query<ListedKey>(listed('select * from api_keys where key_id = $1'), [keyId]);
  return rows[0];
}

interface KeyFilter {
  /** Null means all organisations. */
  readonly organisationId: string | null;
  /** Selects only active keys that expire before this time. */
  readonly expiresBefore?: Date | undefined;
  /** Selects only active keys that have never been used. */
  readonly unused?: boolean | undefined;
}

/** The key's id alone is not enough, because the key may have been removed by the time the next page is requested. */
export function keyCursor({ organisation, key_id }: Pick<ListedKey, 'organisation' | 'key_id'>): string {
  return `${organisation}.${key_id}`;
}

export async function listApiKeys(
  pool: Pool,
  { organisationId, expiresBefore, unused }: KeyFilter,
  after: string | null,
  count: number,
): Promise<ListedKey[]> {
  const values: (string | Date)[] = [];
  // If unused conditions were present and nullable, PostgreSQL would read all keys for every page.
  const conditions: string[] = [];
  if (organisationId !== null) conditions.push(`organisation_id = $${values.push(organisationId)}`);
  if (after !== null) {
    const [slug = '', keyId = ''] = after.split('.');
    const organisation = `(select organisation_id from organisations where slug = $${values.push(slug)})`;
    conditions.push(`(organisation_id, key_id) > (${organisation}, $${values.push(keyId)})`);
  }
  if (expiresBefore !== undefined) conditions.push(`expires_at < $${values.push(expiresBefore)}`);
  if (unused) conditions.push('last_used_at is null');
  if (expiresBefore !== undefined || unused)
    conditions.push('revoked_at is null and (expires_at > now()) is not false');
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : '';
  // The limit is a literal in a subquery, because PostgreSQL assumes that an unknown limit returns a tenth of all rows.
  const page = `select * from api_keys ${where} order by organisation_id, key_id limit ${Math.trunc(count)}`;
  const text = `${listed(page)} order by k.organisation_id, k.key_id`;
  return (await pool.query<ListedKey>(text, values)).rows;
}

/** A key that was already revoked keeps its original time, and `isNew` is false. */
export async function revokeApiKey(client: Client, keyId: string) {
  const { rows } = await client.query<{ organisationId: string; isNew: boolean }>(
    `update api_keys k set revoked_at = coalesce(k.revoked_at, now())
     from (select key_id, revoked_at from api_keys where key_id = $1 for no key update) old
     where k.key_id = old.key_id
     returning k.organisation_id as "organisationId", old.revoked_at is null as "isNew"`,
    [keyId],
  );
  return rows[0];
}

/** A key that already expires sooner stays unchanged. Returns undefined if there is no such active key. */
export async function endApiKeyAfter(client: Client, keyId: string, graceMs: number) {
  const { rows } = await client.query<{
    organisationId: string;
    permissions: readonly string[];
    label: string | null;
  }>(
    `update api_keys
     set expires_at = least(expires_at, now() + $2 * interval '1 millisecond')
     where key_id = $1 and revoked_at is null and (expires_at > now()) is not false
     returning organisation_id as "organisationId", permissions, label`,
    [keyId, graceMs],
  );
  return rows[0];
}
