import { hash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { openIdsAmong } from './hidden-ids.ts';
import { uuidsIn } from './ids-in-text.ts';
import type { IdCheck } from './suppressions.ts';

/** Clients can choose any string as a key, including one that contains an id. */
export type KeyTable = 'receipts' | 'upload_idempotency_keys' | 'interaction_idempotency_keys';

const browserPrefix = 'browser ';
const hashPrefix = 'sha256:';

/** A visitor's key must not equal a key of the organisation's programs. */
export function browserKey(key: string): string {
  return `${browserPrefix}${key}`;
}

/** The key itself, the UUIDs in it, and its parts. */
export function idsInKey(key: string): string[] {
  if (key.startsWith(hashPrefix)) return [key];
  const sent = key.startsWith(browserPrefix) ? key.slice(browserPrefix.length) : key;
  return [...new Set([key, sent, ...uuidsIn(key), ...sent.split(/[\s:;,/|]+/)])].filter((id) => id !== '');
}

/** Stored in place of a key that contains an erased id. Retries still find it. */
export function hashedKey(key: string): string {
  return `${hashPrefix}${hash('sha256', key)}`;
}

export function formsOf(key: string): [plain: string, hashed: string] {
  return [key, hashedKey(key)];
}

export async function formToStore(check: IdCheck, key: string): Promise<string> {
  if (check.isEmpty) return key;
  return (await check.erasedAmong(idsInKey(key))).size > 0 ? hashedKey(key) : key;
}

/** An erasure may have begun that has not replaced the key yet. */
export async function formsToShow(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  keys: readonly string[],
): Promise<(key: string) => string> {
  if (keys.length === 0) return (key) => key;
  const hidden = await openIdsAmong(pool, organisationId, keys.flatMap(idsInKey));
  return (key) => (idsInKey(key).some((id) => hidden.has(id)) ? hashedKey(key) : key);
}

/**
 * A request always claims a key in plain form first, so that form is the lock, and a retry cannot claim the key while
 * this transaction runs. If the hash has been claimed as well, its claim stays.
 */
export async function replaceKeys(
  client: Client,
  organisationId: string,
  table: KeyTable,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return;
  const values = [organisationId, keys, keys.map(hashedKey)];
  const replaced = 'unnest($2::text[], $3::text[]) as r(plain, hashed)';
  if (table !== 'receipts') {
    const expired = new Date(Date.now() - limits.idempotencyKeyLifeMs);
    await client.query(
      `delete from ${table} where organisation_id = $1 and idempotency_key = any ($2::text[]) and claimed_at < $3`,
      [organisationId, keys.map(hashedKey), expired],
    );
    await client.query(
      `delete from ${table} k using ${replaced}, ${table} h
       where k.organisation_id = $1 and k.idempotency_key = r.plain
         and h.organisation_id = $1 and h.idempotency_key = r.hashed`,
      values,
    );
  }
  await client.query(
    `update ${table} k set idempotency_key = r.hashed from ${replaced}
     where k.organisation_id = $1 and k.idempotency_key = r.plain`,
    values,
  );
}
