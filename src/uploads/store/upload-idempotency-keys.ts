import { limits } from '../../limits.ts';
import type { Client, Pool } from '../../postgres/pool.ts';

export interface UploadClaim {
  readonly organisationId: string;
  readonly idempotencyKey: string;
  readonly requestId: string;
  readonly type: string;
  readonly bodySha256: Buffer;
  readonly now: Date;
  /** A key that was claimed before this instant has expired and may be claimed again. */
  readonly forgottenBefore: Date;
}

export interface UploadHolder {
  readonly requestId: string;
  readonly sameBody: boolean;
}

/**
 * Claims the key for this request. Returns false if another request holds it. In both cases, the key's row is locked
 * until our transaction ends, so the second of two concurrent requests waits here for the first.
 */
export async function claimForUpload(client: Client, claim: UploadClaim): Promise<boolean> {
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

type HeldClaim = Omit<UploadClaim, 'requestId' | 'now'>;

/** Returns the request that holds a key, or undefined if the key is free or expired. */
export async function holderOf(client: Client, claim: HeldClaim): Promise<UploadHolder | undefined> {
  return readHolder(client, claim, 'holder of an idempotency key', '');
}

/**
 * Returns the request that holds a key, and locks the key. A concurrent retry of the same batch waits until we have
 * committed.
 */
export async function lockHolder(client: Client, claim: HeldClaim): Promise<UploadHolder | undefined> {
  return readHolder(client, claim, 'lock idempotency key of an upload', 'for update');
}

/** Returns whether any request, whatever its body, has stored something under this key. */
export async function isKeyHeld(
  pool: Pool,
  organisationId: string,
  idempotencyKey: string,
): Promise<boolean> {
  const forgottenBefore = new Date(Date.now() - limits.idempotencyKeyLifeMs);
  const { rows } = await pool.query(
    `select from upload_idempotency_keys where organisation_id = $1 and idempotency_key = $2 and claimed_at >= $3`,
    [organisationId, idempotencyKey, forgottenBefore],
  );
  return rows.length > 0;
}

async function readHolder(
  client: Client,
  claim: HeldClaim,
  name: string,
  lock: string,
): Promise<UploadHolder | undefined> {
  const { rows } = await client.query<{ request_id: string; type: string; body_sha256: Buffer }>({
    name,
    text: `select request_id, type, body_sha256 from upload_idempotency_keys
           where organisation_id = $1 and idempotency_key = $2 and claimed_at >= $3 ${lock}`,
    values: [claim.organisationId, claim.idempotencyKey, claim.forgottenBefore],
  });
  const [holder] = rows;
  if (!holder) return undefined;
  return {
    requestId: holder.request_id,
    sameBody: holder.type === claim.type && holder.body_sha256.equals(claim.bodySha256),
  };
}
