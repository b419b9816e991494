import { limits } from '../limits.ts';
import { insertsInParts, type Write } from '../postgres/pipelined-insert.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { beginAgainUnless, queryRows } from '../postgres/transactions.ts';
import type { KeyedInteraction } from './interaction-rows.ts';

export const claimColumns = [
  'organisation_id',
  'idempotency_key',
  'body_sha256',
  'interaction_id',
  'claimed_at',
];

/** The end of a statement that inserts claims. The statement returns the ids of the interactions whose key was free. */
export const unlessClaimed =
  'on conflict (organisation_id, idempotency_key) do nothing returning interaction_id';

/** Returns statements that claim keys for any number of organisations. Each value is a parameter. */
export function claimsInParts(keyed: readonly KeyedInteraction[]): Write[] {
  const now = new Date();
  const rowOf = ({ organisationId, claim, interactionId }: KeyedInteraction) =>
    [organisationId, claim.key, claim.bodySha256, interactionId, now] as const;
  const rows = keyed.map(rowOf);
  return insertsInParts('interaction_idempotency_keys', claimColumns, rows, unlessClaimed);
}

/** The interaction that has already claimed a key. */
export interface Holder {
  readonly interactionId: string;
  readonly sameBody: boolean;
}

/**
 * Claims an interaction's key, or returns the interaction that holds it. An expired key can be claimed again. A
 * concurrent retry waits on the row until our transaction ends. It then finds the key claimed, or free again if we
 * rolled back.
 */
export async function claimIdempotencyKey(
  client: Client,
  { organisationId, claim, interactionId }: KeyedInteraction,
): Promise<Holder | undefined> {
  const now = new Date();
  const forgottenBefore = new Date(now.getTime() - limits.idempotencyKeyLifeMs);
  const { rowCount } = await client.query({
    name: 'claim idempotency key',
    text: `
      insert into interaction_idempotency_keys as k (${claimColumns.join(', ')})
      values ($1, $2, $3, $4, $5)
      on conflict (organisation_id, idempotency_key) do update
        set body_sha256 = excluded.body_sha256, interaction_id = excluded.interaction_id, claimed_at = excluded.claimed_at
        where k.claimed_at < $6`,
    values: [organisationId, claim.key, claim.bodySha256, interactionId, now, forgottenBefore],
  });
  if (rowCount === 1) return undefined;
  const holder = await findHolder(client, { organisationId, claim }, forgottenBefore);
  beginAgainUnless(holder, 'an idempotency key vanished while it was locked');
  return holder;
}

/** Returns the interaction that holds a key, without claiming the key if it is free. */
export async function findHolder(
  client: Client,
  { organisationId, claim }: Pick<KeyedInteraction, 'organisationId' | 'claim'>,
  forgottenBefore = new Date(Date.now() - limits.idempotencyKeyLifeMs),
): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select interaction_id as "interactionId", body_sha256 = $4 as "sameBody" from interaction_idempotency_keys
     where organisation_id = $1 and idempotency_key = $2 and claimed_at >= $3`,
    [organisationId, claim.key, forgottenBefore, claim.bodySha256],
  );
  return rows[0];
}

/** Changes the body hash of a claimed and locked key, which is possible because nothing is stored under it yet. */
export async function replaceClaim(
  client: Client,
  { organisationId, claim }: KeyedInteraction,
): Promise<void> {
  const replace = {
    text: `update interaction_idempotency_keys set body_sha256 = $3, claimed_at = $4
           where organisation_id = $1 and idempotency_key = $2`,
    values: [organisationId, claim.key, claim.bodySha256, new Date()],
  };
  await queryRows(client, replace, 1);
}

/**
 * Deletes expired keys in transactions of limited size. Each key costs PostgreSQL 8 µs of CPU, including vacuum.
 * Dropping partitions instead would not work: near midnight, two processes whose clocks differ would claim the same key
 * in two partitions.
 */
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
    // With a subquery instead of arrays, PostgreSQL would read the whole table. The age is checked again, because a key
    // may have been claimed again in the meantime.
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
