import { Round } from '../jobs/round.ts';
import { limits } from '../limits.ts';
import { insertsInParts, type Write } from '../postgres/pipelined-insert.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { beginAgainUnless, databaseTime, queryRows } from '../postgres/transactions.ts';
import { formsOf, formToStore, replaceKeys } from '../suppression/idempotency-keys.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import type { KeyedInteraction } from './interaction-rows.ts';

export const claimColumns = [
  'organisation_id',
  'idempotency_key',
  'body_sha256',
  'interaction_id',
  'claimed_at',
];

/** Returns the ids of the interactions whose key was free. */
export const unlessClaimed =
  'on conflict (organisation_id, idempotency_key) do nothing returning interaction_id';

export function claimsInParts(keyed: readonly KeyedInteraction[]): Write[] {
  const now = new Date();
  const rowOf = ({ organisationId, claim, interactionId }: KeyedInteraction) =>
    [organisationId, claim.key, claim.bodySha256, interactionId, now] as const;
  const rows = keyed.map(rowOf);
  return insertsInParts('interaction_idempotency_keys', claimColumns, rows, unlessClaimed);
}

interface Holder {
  readonly key: string;
  readonly interactionId: string;
  readonly sameBody: boolean;
}

/**
 * A concurrent retry waits on the row until our transaction ends, and then finds the key claimed, or free again if we
 * rolled back. The key is claimed in plain form, and replaced if it contains an erased id. That is checked once the key
 * is locked, so a request that knows of an erasure cannot overtake one that does not.
 */
export async function claimIdempotencyKey(
  client: Client,
  { organisationId, claim, interactionId }: KeyedInteraction,
  suppressions: Suppressions,
): Promise<Holder | undefined> {
  const now = new Date();
  const forgottenBefore = new Date(now.getTime() - limits.idempotencyKeyLifeMs);
  const insert = {
    name: 'claim idempotency key',
    text: `
      insert into interaction_idempotency_keys as k (${claimColumns.join(', ')})
      values ($1, $2, $3, $4, $5)
      on conflict (organisation_id, idempotency_key) do update
        set body_sha256 = excluded.body_sha256, interaction_id = excluded.interaction_id, claimed_at = excluded.claimed_at
        where k.claimed_at < $6`,
    values: [organisationId, claim.key, claim.bodySha256, interactionId, now, forgottenBefore],
  };
  const [{ rowCount }, check] = await Promise.all([
    client.query(insert),
    suppressions.checkNow(client, organisationId),
  ]);
  const isNew = rowCount === 1;
  if (isNew && check.isEmpty) return undefined;
  const [plain, hashed] = formsOf(claim.key);
  const forms = isNew ? [hashed] : [plain, hashed];
  const holder = await holderAmong(client, { organisationId, claim }, forms, forgottenBefore);
  beginAgainUnless(isNew || holder, 'an idempotency key vanished while it was locked');
  if (holder ? holder.key === hashed : (await formToStore(check, claim.key)) === hashed)
    await replaceKeys(client, organisationId, 'interaction_idempotency_keys', [claim.key]);
  return holder;
}

type Held = Pick<KeyedInteraction, 'organisationId' | 'claim'>;

export function findHolder(client: Client, held: Held): Promise<Holder | undefined> {
  const forgottenBefore = new Date(Date.now() - limits.idempotencyKeyLifeMs);
  return holderAmong(client, held, formsOf(held.claim.key), forgottenBefore);
}

/** If both forms are held, the last one given counts. */
async function holderAmong(
  client: Client,
  { organisationId, claim }: Held,
  forms: readonly string[],
  forgottenBefore: Date,
): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select idempotency_key as key, interaction_id as "interactionId", body_sha256 = $4 as "sameBody"
     from interaction_idempotency_keys
     where organisation_id = $1 and idempotency_key = any ($2::text[]) and claimed_at >= $3`,
    [organisationId, forms, forgottenBefore, claim.bodySha256],
  );
  return rows.toSorted((one, other) => forms.indexOf(other.key) - forms.indexOf(one.key))[0];
}

/** Safe because the key is locked and nothing is stored under it yet. */
export async function replaceClaim(
  client: Client,
  { organisationId, claim }: KeyedInteraction,
  { key }: Holder,
): Promise<void> {
  const replace = {
    text: `update interaction_idempotency_keys set body_sha256 = $3, claimed_at = $4
           where organisation_id = $1 and idempotency_key = $2`,
    values: [organisationId, key, claim.bodySha256, new Date()],
  };
  await queryRows(client, replace, 1);
}

/**
 * Each key costs PostgreSQL 8 µs of CPU, including vacuum. Dropping partitions would be cheaper, but near midnight, two
 * processes whose clocks differ would claim the same key in two partitions.
 */
export async function purgeIdempotencyKeys(
  pool: Pool,
  of: 'interaction' | 'upload',
  round = new Round(),
): Promise<'more' | 'all'> {
  const table = `${of}_idempotency_keys`;
  const forgottenBefore = new Date((await databaseTime(pool)).getTime() - limits.idempotencyKeyLifeMs);
  return round.repeat(async () => {
    const { rows } = await pool.query<{ organisation_id: string; idempotency_key: string }>(
      `select organisation_id, idempotency_key from ${table} where claimed_at < $1
       order by claimed_at limit ${limits.purgeRowsMax}`,
      [forgottenBefore],
    );
    if (rows.length === 0) return false;
    // With a subquery, PostgreSQL would read the whole table. A key may have been claimed again since it was read.
    await pool.query(
      `delete from ${table} k using unnest($2::uuid[], $3::text[]) as old(organisation_id, idempotency_key)
       where k.organisation_id = old.organisation_id and k.idempotency_key = old.idempotency_key and k.claimed_at < $1`,
      [
        forgottenBefore,
        rows.map(({ organisation_id }) => organisation_id),
        rows.map(({ idempotency_key }) => idempotency_key),
      ],
    );
    return rows.length === limits.purgeRowsMax;
  });
}
