import type { Client, Pool } from './pool.ts';

export interface StoredKey {
  readonly organisationId: string;
  readonly keySha256: Buffer;
  readonly permissions: readonly string[];
  /** Revoked, or past the end of its grace. */
  readonly ended: boolean;
}

export async function findApiKey(pool: Pool, keyId: string): Promise<StoredKey | undefined> {
  const { rows } = await pool.query<StoredKey>({
    name: 'find api key',
    text: `
      select organisation_id as "organisationId", key_sha256 as "keySha256", permissions,
        revoked_at is not null or coalesce(expires_at <= now(), false) as ended
      from api_keys where key_id = $1`,
    values: [keyId],
  });
  return rows[0];
}

export async function insertApiKey(
  pool: Pool | Client,
  key: { keyId: string; organisationId: string; keySha256: Buffer; permissions: readonly string[] },
): Promise<void> {
  await pool.query(
    'insert into api_keys (key_id, organisation_id, key_sha256, permissions) values ($1, $2, $3, $4)',
    [key.keyId, key.organisationId, key.keySha256, key.permissions],
  );
}

export interface ListedKey {
  readonly key_id: string;
  readonly organisation: string;
  readonly permissions: readonly string[];
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly expires_at: string | null;
}

/** The keys of one organisation, or of all: for the operator's eyes, never on a request's path. */
export async function listApiKeys(pool: Pool, organisationId: string | null): Promise<ListedKey[]> {
  const { rows } = await pool.query<ListedKey>(
    `select k.key_id, o.slug as organisation, k.permissions, k.created_at, k.revoked_at, k.expires_at
     from api_keys k join organisations o using (organisation_id)
     where $1::uuid is null or k.organisation_id = $1
     order by o.slug, k.created_at, k.key_id`,
    [organisationId],
  );
  return rows;
}

/** False if there is no such key. Revoking a key twice keeps the first time. */
export async function revokeApiKey(pool: Pool, keyId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'update api_keys set revoked_at = coalesce(revoked_at, now()) where key_id = $1',
    [keyId],
  );
  return rowCount === 1;
}

/** Lets a key end once its grace is over, or sooner if it was to end sooner; undefined if there is no such key in use. */
export async function endApiKeyAfter(
  client: Client,
  keyId: string,
  graceMs: number,
): Promise<{ organisationId: string; permissions: readonly string[] } | undefined> {
  const { rows } = await client.query<{ organisationId: string; permissions: string[] }>(
    `update api_keys set expires_at = least(expires_at, now() + $2 * interval '1 millisecond')
     where key_id = $1 and revoked_at is null and (expires_at > now()) is not false
     returning organisation_id as "organisationId", permissions`,
    [keyId, graceMs],
  );
  return rows[0];
}
