import { type JobKind, jobKind } from '../jobs/job.ts';
import { Round } from '../jobs/round.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime } from '../postgres/transactions.ts';
import { uuidFloor } from '../registry/uuid-v7.ts';
import { countChange } from '../rejections/rejection-kinds.ts';
import { expiredBefore, rejectionsKept, trustedRejectionDays } from './kept-days.ts';

/** An organisation may keep rejections for fewer days than `daysKept`. */
export function purgeRejections(daysKept: number): JobKind {
  const oldestKept = (at: Date) => uuidFloor(at.getTime() - daysKept * 24 * 3_600_000);
  return jobKind<'purge'>({
    name: 'purging',
    first: 'purge',
    async find(pool) {
      const now = await databaseTime(pool);
      const found = await organisationsWithOld(pool, oldestKept(now), null);
      for (const [days, organisationIds] of await rejectionsKept(pool))
        found.push(
          ...(await organisationsWithOld(
            pool,
            uuidFloor(expiredBefore(days, now).getTime()),
            organisationIds,
          )),
        );
      return [...new Set(found)];
    },
    steps: {
      purge: {
        async work(client, { organisationId }) {
          const now = await databaseTime(client);
          const own = await trustedRejectionDays(client, organisationId);
          const ofOwn = own === null ? '' : uuidFloor(expiredBefore(own, now).getTime());
          const below = ofOwn > oldestKept(now) ? ofOwn : oldestKept(now);
          const kindIds = await removeSome(client, organisationId, below);
          const rejected = new Map<string, number>();
          for (const kindId of kindIds) countChange(rejected, kindId, -1);
          return {
            next: kindIds.length < limits.purgeRowsMax ? 'ended' : { step: 'purge' },
            done: [{ organisationId, stored: null, rejected, receipt: null }],
          };
        },
      },
    },
  });
}

/** No index orders all organisations' rejections by age, so each organisation's part of the primary key is searched. */
async function organisationsWithOld(
  pool: Pool,
  below: string,
  organisationIds: readonly string[] | null,
): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select o.organisation_id
     from tenants o cross join lateral (
       select r.rejection_id from rejections r
       where r.organisation_id = o.organisation_id and r.rejection_id < $1
       order by r.rejection_id limit 1) old
     where $2::uuid[] is null or o.organisation_id = any ($2::uuid[])`,
    [below, organisationIds],
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/**
 * `skip locked` never waits for a lock, so this cannot deadlock, and the next job removes the rows that were locked. A
 * cluster can only lock rows on one node, so this handles one organisation.
 */
async function removeSome(client: Client, organisationId: string, below: string): Promise<string[]> {
  const { rows } = await client.query<{ kind_id: string }>(
    `delete from rejections where organisation_id = $1 and rejection_id = any(array(
       select r.rejection_id from rejections r where r.organisation_id = $1 and r.rejection_id < $2
       order by r.rejection_id limit ${limits.purgeRowsMax} for update skip locked))
     returning kind_id`,
    [organisationId, below],
  );
  return rows.map(({ kind_id }) => kind_id);
}

/** Kinds that have no rejections and have not been used for the given time. */
export async function purgeKinds(pool: Pool, unusedMs: number, round = new Round()): Promise<'more' | 'all'> {
  const unusedSince = new Date((await databaseTime(pool)).getTime() - unusedMs);
  return round.repeat(async () => {
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
    if (rows.length === 0) return false;
    // The time is checked again, because a kind may have been used in the meantime, which sets `used_at`.
    await pool.query(
      `delete from rejection_kinds k using unnest($2::uuid[], $3::uuid[]) as old(organisation_id, kind_id)
       where k.organisation_id = old.organisation_id and k.kind_id = old.kind_id and k.used_at < $1`,
      [unusedSince, rows.map(({ organisation_id }) => organisation_id), rows.map(({ kind_id }) => kind_id)],
    );
    return rows.length === limits.purgeRowsMax;
  });
}
