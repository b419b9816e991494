import { storeInTransaction } from '../bookkeeping/store.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { firstUuid, uuidFloor } from '../registry/uuid-v7.ts';
import { countChange } from './rejection-kinds.ts';

/**
 * Removes rejections of records that failed before a given time, in transactions of limited size. It covers either all
 * organisations or only the given organisations.
 */
export async function purgeRejections(
  pool: Pool,
  failedBefore: Date,
  stopping?: AbortSignal,
  organisationIds: readonly string[] | null = null,
): Promise<void> {
  const oldest = uuidFloor(failedBefore.getTime());
  let found: readonly string[];
  let after = firstUuid;
  do {
    found = await organisationsWithOld(pool, oldest, after, organisationIds);
    for (const organisationId of found) {
      await purgeOrganisation(pool, organisationId, oldest, stopping);
      if (stopping?.aborted) return;
    }
    after = found.at(-1) ?? after;
  } while (found.length === limits.purgeRowsMax);
}

/**
 * Finds organisations with old rejections. It searches each organisation's part of the primary key, because no index
 * orders all organisations' rejections by age.
 */
async function organisationsWithOld(
  pool: Pool,
  oldest: string,
  after: string,
  organisationIds: readonly string[] | null,
): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select o.organisation_id
     from tenants o cross join lateral (
       select r.rejection_id from rejections r
       where r.organisation_id = o.organisation_id and r.rejection_id < $1
       order by r.rejection_id limit 1) old
     where o.organisation_id > $2 and ($3::uuid[] is null or o.organisation_id = any ($3::uuid[]))
     order by o.organisation_id limit ${limits.purgeRowsMax}`,
    [oldest, after, organisationIds],
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

async function purgeOrganisation(
  pool: Pool,
  organisationId: string,
  oldest: string,
  stopping: AbortSignal | undefined,
): Promise<void> {
  let gone: number;
  do {
    gone = await storeInTransaction(pool, async (client) => {
      const kindIds = await removeSome(client, organisationId, oldest);
      const rejected = new Map<string, number>();
      for (const kindId of kindIds) countChange(rejected, kindId, -1);
      return { result: kindIds.length, done: [{ organisationId, stored: null, rejected, receipt: null }] };
    });
  } while (gone === limits.purgeRowsMax && !stopping?.aborted);
}

/**
 * Removes some rejections and returns the kind of each. `skip locked` never waits for a lock, so this cannot deadlock,
 * and the next run removes the rows that were locked. It handles one organisation at a time, because a cluster can only
 * lock rows on one node.
 */
async function removeSome(client: Client, organisationId: string, oldest: string): Promise<string[]> {
  const { rows } = await client.query<{ kind_id: string }>(
    `delete from rejections where organisation_id = $1 and rejection_id = any(array(
       select r.rejection_id from rejections r where r.organisation_id = $1 and r.rejection_id < $2
       order by r.rejection_id limit ${limits.purgeRowsMax} for update skip locked))
     returning kind_id`,
    [organisationId, oldest],
  );
  return rows.map(({ kind_id }) => kind_id);
}

/** Removes kinds that have no rejections and have not been used since the given time. */
export async function purgeKinds(pool: Pool, unusedSince: Date, stopping?: AbortSignal): Promise<void> {
  let found: number;
  do {
    const { rows } = await pool.query<{ organisation_id: string; kind_id: string }>(
      `select k.organisation_id, k.kind_id from rejection_kinds k
       where k.used_at < $1
         and not exists (
           select from rejections r where r.organisation_id = k.organisation_id and r.kind_id = k.kind_id)
         and not exists (
           select from rejection_count_changes c
           where c.organisation_id = k.organisation_id and c.kind_id = k.kind_id)
       limit $2`,
      [unusedSince, limits.purgeRowsMax],
    );
    found = rows.length;
    if (found === 0) return;
    // The time is checked again, because a kind may have been used in the meantime, which sets `used_at`.
    await pool.query(
      `delete from rejection_kinds k using unnest($2::uuid[], $3::uuid[]) as old(organisation_id, kind_id)
       where k.organisation_id = old.organisation_id and k.kind_id = old.kind_id and k.used_at < $1`,
      [unusedSince, rows.map(({ organisation_id }) => organisation_id), rows.map(({ kind_id }) => kind_id)],
    );
  } while (found === limits.purgeRowsMax && !stopping?.aborted);
}
