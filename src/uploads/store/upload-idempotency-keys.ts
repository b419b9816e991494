import { limits } from '../../limits.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import { beginAgainUnless } from '../../postgres/transactions.ts';
import { formsOf, formToStore, hashedKey, replaceKeys } from '../../suppression/idempotency-keys.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';

interface UploadClaim {
  readonly organisationId: string;
  readonly idempotencyKey: string;
  readonly requestId: string;
  readonly type: string;
  readonly bodySha256: Buffer;
  readonly now: Date;
  /** An older claim has expired, and its key may be claimed again. */
  readonly forgottenBefore: Date;
}

interface UploadHolder {
  readonly requestId: string;
  readonly sameBody: boolean;
}

interface Claimed {
  /** Undefined if this request holds the key. */
  readonly holder: UploadHolder | undefined;
  /** In the form in which it may be stored. */
  readonly key: string;
}

/**
 * The key is locked until our transaction ends, so the second of two concurrent requests waits here. If `isBegun`, the
 * key is probably claimed and only has to be locked. It is claimed in plain form, and replaced if it contains an erased
 * id. That is checked once the key is locked, so a request that knows of an erasure cannot overtake one that does not.
 */
export async function claimForUpload(
  client: Client,
  claim: UploadClaim,
  isBegun: boolean,
  suppressions: Suppressions,
): Promise<Claimed> {
  const { organisationId, idempotencyKey: plain } = claim;
  const hashed = hashedKey(plain);
  const locked = isBegun ? await holderOf(client, claim, [plain, hashed], 'for update') : undefined;
  const [isNew, check] = await Promise.all([
    locked ? false : insertClaim(client, claim),
    suppressions.checkNow(client, organisationId),
  ]);
  if (isNew && check.isEmpty) return { holder: undefined, key: plain };
  const holder = locked ?? (await holderOf(client, claim, isNew ? [hashed] : [plain, hashed], 'for update'));
  beginAgainUnless(isNew || holder, 'an idempotency key vanished while it was locked');
  const key = await formToStore(check, plain);
  if (isNew && (holder || key === hashed))
    await replaceKeys(client, organisationId, 'upload_idempotency_keys', [plain]);
  return { holder, key };
}

async function insertClaim(client: Client, claim: UploadClaim): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'claim idempotency key of an upload',
    text: `
      insert into upload_idempotency_keys as k
        (organisation_id, idempotency_key, request_id, type, body_sha256, claimed_at)
      values ($1, $2, $3, $4, $5, $6)
      on conflict (organisation_id, idempotency_key) do update
        set request_id = excluded.request_id, type = excluded.type, body_sha256 = excluded.body_sha256,
          claimed_at = excluded.claimed_at
        where k.claimed_at < $7`,
    values: [
      claim.organisationId,
      claim.idempotencyKey,
      claim.requestId,
      claim.type,
      claim.bodySha256,
      claim.now,
      claim.forgottenBefore,
    ],
  });
  return rowCount === 1;
}

/** Undefined if the key is free or expired. With a lock, a concurrent retry waits until we have committed. */
export async function holderOf(
  client: Client,
  claim: Omit<UploadClaim, 'requestId' | 'now'>,
  forms: readonly string[] = formsOf(claim.idempotencyKey),
  lock: '' | 'for update' = '',
): Promise<UploadHolder | undefined> {
  const { rows } = await client.query<{ request_id: string; type: string; body_sha256: Buffer }>({
    name: lock ? 'lock idempotency key of an upload' : 'holder of an idempotency key',
    text: `select request_id, type, body_sha256 from upload_idempotency_keys
           where organisation_id = $1 and idempotency_key = any ($2::text[]) and claimed_at >= $3 ${lock}`,
    values: [claim.organisationId, forms, claim.forgottenBefore],
  });
  const [holder] = rows;
  if (!holder) return undefined;
  return {
    requestId: holder.request_id,
    sameBody: holder.type === claim.type && holder.body_sha256.equals(claim.bodySha256),
  };
}

/** Returns whether any request holds the key, even one with another body. */
export async function isKeyHeld(
  pool: Pool,
  organisationId: string,
  idempotencyKey: string,
): Promise<boolean> {
  const { rows } = await pool.query(
    `select from upload_idempotency_keys
     where organisation_id = $1 and idempotency_key = any ($2::text[])
       and claimed_at >= now() - make_interval(secs => $3)`,
    [organisationId, formsOf(idempotencyKey), limits.idempotencyKeyLifeMs / 1_000],
  );
  return rows.length > 0;
}
