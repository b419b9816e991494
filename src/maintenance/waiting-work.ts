import type { Config } from '../config.ts';
import type { WaitingWork } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';

/**
 * Returns the unfinished stepwise work, for metrics. Each statement reads an index that contains only unfinished work.
 */
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
    // The time is measured from the end of the sweep, because the lake's files cannot be rewritten earlier.
    'lake erasures': await due(
      pool,
      `select count(*)::integer as waiting, ${secondsSince('min(swept_at)')}
       from erasures where lake_state in ('pending', 'running')`,
    ),
    // An organisation that is being removed no longer has a row in `tenants`.
    'access requests': await requested(
      pool,
      `select count(*)::integer as waiting, min(a.access_request_id::text) as oldest
       from access_requests a join tenants o on o.organisation_id = a.organisation_id
       where a.state in ('pending', 'running')`,
    ),
    // In the statements below, a cluster runs the subquery with an offset separately, and joins its result with the
    // table on the coordinator.
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

/**
 * Returns the state of work that is identified by request ids. These are UUIDv7, so they contain the time of the
 * request.
 */
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
