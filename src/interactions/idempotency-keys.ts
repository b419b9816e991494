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

/** The end of an insert of claims: it returns the ids of the interactions whose key was free. */
export const unlessClaimed =
  'on conflict (organisation_id, idempotency_key) do nothing returning interaction_id';

/** Statements that claim keys of any organisations, with each value as a parameter. */
export function claimsInParts(keyed: readonly KeyedInteraction[]): Write[] {
  const now = new Date();
  const rowOf = ({ organisationId, claim, interactionId }: KeyedInteraction) =>
    [organisationId, claim.key, claim.bodySha256, interactionId, now] as const;
  const rows = keyed.map(rowOf);
  return insertsInParts('interaction_idempotency_keys', claimColumns, rows, unlessClaimed);
}

/** The interaction that a key was claimed for before. */
export interface Holder {
  readonly interactionId: string;
  readonly sameBody: boolean;
}

/**
 * Claims the key of one interaction, or returns its holder; an expired key may be claimed again. A concurrent retry waits on the row until our
 * transaction ends: then it finds the key claimed, or free again if we rolled back.
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

/** The holder of a key, which is not claimed if it has none. */
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

/** Gives a claimed and locked key to another body: nothing is stored under it yet. */
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
 * Removes expired keys, in bounded transactions: 8 µs of PostgreSQL's CPU for each, vacuum included. Partitions to drop
 * are no alternative: near midnight, two processes whose clocks differ would claim the same key in two of them.
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
