import type { Config } from '../config.ts';
import type { WaitingWork } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';

/** Work that is done in steps and is not finished, for metrics. Each statement reads an index with nothing else in it. */
export async function waitingWork(
  pool: Pool,
  { deletedOrganisationsKeptDays }: Pick<Config, 'deletedOrganisationsKeptDays'>,
): Promise<Record<string, WaitingWork>> {
  return {
    erasures: await requested(
      pool,
      `select count(*)::integer as waiting, min(erasure_id::text) as oldest
       from erasures where state in ('pending', 'running')`,
    ),
    // An organisation that is being removed has no tenant any more.
    'access requests': await requested(
      pool,
      `select count(*)::integer as waiting, min(a.access_request_id::text) as oldest
       from access_requests a join tenants o on o.organisation_id = a.organisation_id
       where a.state in ('pending', 'running')`,
    ),
    // Below, a cluster reads what has an offset in a statement of its own, and joins it with the table of the coordinator.
    retention: await due(
      pool,
      `select count(distinct organisation_id)::integer as waiting, ${secondsSince('min(p.waiting_since)')}
       from organisations o join (
         select organisation_id, type, waiting_since from retention_progress
         where deleted_below < expired_below offset 0) as p using (organisation_id)
       where o.removal_started_at is null
         and case p.type when 'interactions' then o.interactions_kept_days else o.receipts_kept_days end is not null`,
    ),
    removals: await due(
      pool,
      `select count(*)::integer as waiting,
         ${secondsSince('min(coalesce(r.stepped_at, o.deleted_at + make_interval(days => $1)))')}
       from organisations o left join (
         select organisation_id, stepped_at from removals offset 0) as r using (organisation_id)
       where o.deleted_at is not null
         and (o.removal_started_at is not null or o.deleted_at < now() - make_interval(days => $1))`,
      [deletedOrganisationsKeptDays],
    ),
  };
}

/** Their ids are UUIDv7: the time of the request. */
async function requested(pool: Pool, text: string): Promise<WaitingWork> {
  const statement = { text, values: [] };
  const { waiting, oldest } = await queryRow<{ waiting: number; oldest: string | null }>(pool, statement);
  const ageMs = oldest === null ? 0 : Date.now() - msOfUuidV7(oldest);
  return { waiting, oldestSeconds: Math.max(0, ageMs / 1_000) };
}

function due(pool: Pool, text: string, values: unknown[] = []): Promise<WaitingWork> {
  return queryRow<WaitingWork>(pool, { text, values });
}

function secondsSince(time: string): string {
  return `coalesce(extract(epoch from now() - ${time}), 0)::double precision as "oldestSeconds"`;
}
