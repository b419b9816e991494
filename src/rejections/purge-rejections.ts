import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { firstUuid, uuidFloor } from '../registry/uuid-v7.ts';

/** Removes rejections of records that failed before then, a bounded number at a time so that no transaction is long. */
export async function purgeRejections(pool: Pool, failedBefore: Date, stopping?: AbortSignal): Promise<void> {
  const oldest = uuidFloor(failedBefore.getTime());
  // Where the last ones were: nobody looks at the organisations before it again.
  let from: string | undefined = firstUuid;
  do {
    const start: string = from;
    from = await retryConflicts(() => inTransaction(pool, (client) => purgeSome(client, oldest, start)));
  } while (from !== undefined && !stopping?.aborted);
}

/**
 * Returns the organisation to go on with, undefined at the end. Organisation by organisation, along the primary key: no
 * index has all of them by age. It waits for nobody, so that it can be part of no deadlock: what somebody has locked goes
 * the next time.
 */
async function purgeSome(client: Client, oldest: string, from: string): Promise<string | undefined> {
  const { rows: found } = await client.query<{ organisation_id: string; rejection_id: string }>(
    `select o.organisation_id, old.rejection_id
     from organisations o cross join lateral (
       select r.rejection_id from rejections r
       where r.organisation_id = o.organisation_id and r.rejection_id < $1
       order by r.rejection_id limit ${limits.purgeRowsMax} for update skip locked) old
     where o.organisation_id >= $2 order by o.organisation_id
     limit ${limits.purgeRowsMax}`,
    [oldest, from],
  );
  if (found.length === 0) return undefined;
  const { rows } = await client.query<{ organisation_id: string; kind_id: string }>(
    `delete from rejections r using unnest($1::uuid[], $2::uuid[]) as old(organisation_id, rejection_id)
     where r.organisation_id = old.organisation_id and r.rejection_id = old.rejection_id
     returning r.organisation_id, r.kind_id`,
    [found.map(({ organisation_id }) => organisation_id), found.map(({ rejection_id }) => rejection_id)],
  );
  if (rows.length > 0) {
    await client.query(
      `insert into rejection_count_changes (organisation_id, kind_id, rejections)
       select organisation_id, kind_id, -count(*) from unnest($1::uuid[], $2::uuid[]) as gone(organisation_id, kind_id)
       group by organisation_id, kind_id`,
      [rows.map(({ organisation_id }) => organisation_id), rows.map(({ kind_id }) => kind_id)],
    );
  }
  return found.length === limits.purgeRowsMax ? found.at(-1)?.organisation_id : undefined;
}

/** Removes kinds for which nothing has failed since then and of which nothing is left. */
export async function purgeKinds(pool: Pool, unusedSince: Date, stopping?: AbortSignal): Promise<void> {
  let gone: number | null;
  do {
    ({ rowCount: gone } = await pool.query(
      // The time is asked twice: for a kind that is used again meanwhile passes the inner question, and must not pass both.
      `delete from rejection_kinds where used_at < $1 and (organisation_id, kind_id) in (
         select k.organisation_id, k.kind_id from rejection_kinds k
         where k.used_at < $1
           and not exists (
             select from rejections r where r.organisation_id = k.organisation_id and r.kind_id = k.kind_id)
           and not exists (
             select from rejection_count_changes c
             where c.organisation_id = k.organisation_id and c.kind_id = k.kind_id)
         limit $2)`,
      [unusedSince, limits.purgeRowsMax],
    ));
  } while (gone === limits.purgeRowsMax && !stopping?.aborted);
}
