import { isUncollected } from '../access/find-access-requests.ts';
import type { Config } from '../config.ts';
import { isUnswept } from '../erasure/find-erasures.ts';
import type { WaitingWork } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';

/**
 * The kinds of jobs that count from the start of the job. Settling is not among them: while an organisation uploads, it
 * always has batches to settle, so its job may be old although nothing waits.
 */
const countedJobs = ['rewriting', 'retention', 'purging', 'expired access requests'];

/**
 * Returns the unfinished work, for metrics. Requests and removals are counted where they are stored and not by their
 * jobs. They wait from the time of the request, also if they have no job at the moment, because ids are still being
 * rewritten, too much has been collected, or files in the lake have not been removed. A request is always older than its
 * job. Each statement reads an index that contains only unfinished work.
 */
export async function waitingWork(
  pool: Pool,
  { deletedOrganisationsKeptDays }: Pick<Config, 'deletedOrganisationsKeptDays'>,
): Promise<Record<string, WaitingWork>> {
  return {
    ...(await jobsOf(pool, countedJobs)),
    erasures: await requested(
      pool,
      `select count(*)::integer as waiting, min(erasure_id::text) as oldest
       from erasures where ${isUnswept}`,
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
       where ${isUncollected('a.state')}`,
    ),
    // A cluster runs the subquery with an offset separately, and joins its result with the table on the coordinator.
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

async function jobsOf(pool: Pool, kinds: readonly string[]): Promise<Record<string, WaitingWork>> {
  const { rows } = await pool.query<WaitingWork & { kind: string }>(
    `select kind, count(*)::integer as waiting, ${secondsSince('min(since)')} from jobs
     where kind = any ($1::text[]) group by kind`,
    [kinds],
  );
  const counted = kinds.map((kind) => {
    const { waiting = 0, oldestSeconds = 0 } = rows.find((row) => row.kind === kind) ?? {};
    return [kind, { waiting, oldestSeconds }];
  });
  return Object.fromEntries(counted);
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
