import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { BeginAgain } from '../postgres/transactions.ts';

export interface Claim {
  readonly organisationId: string;
  readonly idempotencyKey: string;
  readonly bodySha256: Buffer;
  readonly interactionId: string;
  readonly now: Date;
  /** A key claimed before this instant has expired and may be claimed again. */
  readonly forgottenBefore: Date;
}

export type Claimed =
  | { readonly claimed: true }
  | { readonly claimed: false; readonly interactionId: string; readonly sameBody: boolean };

/**
 * Claims the key for this request. A concurrent retry waits on the row until our transaction ends: then it finds the
 * key claimed, or free again if we rolled back.
 */
export async function claimIdempotencyKey(client: Client, claim: Claim): Promise<Claimed> {
  const { rowCount } = await client.query({
    name: 'claim idempotency key',
    text: `
      insert into interaction_idempotency_keys as k
        (organisation_id, idempotency_key, body_sha256, interaction_id, claimed_at)
      values ($1, $2, $3, $4, $5)
      on conflict (organisation_id, idempotency_key) do update
        set body_sha256 = excluded.body_sha256, interaction_id = excluded.interaction_id, claimed_at = excluded.claimed_at
        where k.claimed_at < $6`,
    values: [
      claim.organisationId,
      claim.idempotencyKey,
      claim.bodySha256,
      claim.interactionId,
      claim.now,
      claim.forgottenBefore,
    ],
  });
  if (rowCount === 1) return { claimed: true };
  const { rows } = await client.query<{ interaction_id: string; body_sha256: Buffer }>(
    `select interaction_id, body_sha256 from interaction_idempotency_keys
     where organisation_id = $1 and idempotency_key = $2 and claimed_at >= $3`,
    [claim.organisationId, claim.idempotencyKey, claim.forgottenBefore],
  );
  const [holder] = rows;
  if (!holder) throw new BeginAgain('an idempotency key vanished while it was locked');
  return {
    claimed: false,
    interactionId: holder.interaction_id,
    sameBody: holder.body_sha256.equals(claim.bodySha256),
  };
}

/** Gives a claimed and locked key to another body: nothing is stored under it yet. */
export async function replaceClaim(client: Client, claim: Claim): Promise<void> {
  await client.query(
    `update interaction_idempotency_keys set body_sha256 = $3, claimed_at = $4
     where organisation_id = $1 and idempotency_key = $2`,
    [claim.organisationId, claim.idempotencyKey, claim.bodySha256, claim.now],
  );
}

/** Removes expired keys, in bounded transactions. */
export async function purgeIdempotencyKeys(
  pool: Pool,
  of: 'interaction' | 'upload',
  forgottenBefore: Date,
  stopping?: AbortSignal,
): Promise<void> {
  const table = `${of}_idempotency_keys`;
  let found: number;
  do {
    const { rows } = await pool.query<{ organisation_id: string; idempotency_key: string }>(
      `select organisation_id, idempotency_key from ${table} where claimed_at < $1
       order by claimed_at limit ${limits.purgeRowsMax}`,
      [forgottenBefore],
    );
    found = rows.length;
    if (found === 0) return;
    // With a subquery in place of arrays, the whole table would be read. The age is checked again, because a key may
    // have been claimed again meanwhile.
    await pool.query(
      `delete from ${table} k using unnest($2::uuid[], $3::text[]) as old(organisation_id, idempotency_key)
       where k.organisation_id = old.organisation_id and k.idempotency_key = old.idempotency_key and k.claimed_at < $1`,
      [
        forgottenBefore,
        rows.map(({ organisation_id }) => organisation_id),
        rows.map(({ idempotency_key }) => idempotency_key),
      ],
    );
  } while (found === limits.purgeRowsMax && !stopping?.aborted);
}
