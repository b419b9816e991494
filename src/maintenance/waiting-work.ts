import { isUncollected } from '../access/find-access-requests.ts';
import type { Config } from '../config.ts';
import { isUnswept } from '../erasure/find-erasures.ts';
import type { WaitingWork } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';

const countedJobs = ['rewriting', 'retention', 'purging', 'expired access requests'];

/**
 * For the other kinds, jobs do not show how much work is waiting, or for how long. A job ends while a request has to
 * wait because ids are still being rewritten, too much has been collected, or the lake has files left. A job can cover
 * several requests, all of which are older than the job. And while an organisation uploads, its job of settling never
 * ends.
 */
const counted = {
  erasures: { since: timeOf('min(erasure_id::text)'), of: `erasures where ${isUnswept}` },
  // From the end of the sweep, because the lake's files cannot be rewritten earlier.
  'lake erasures': { since: 'min(swept_at)', of: `erasures where lake_state in ('pending', 'running')` },
  // An organisation that is being removed no longer has a row in `tenants`.
  'access requests': {
    since: timeOf('min(access_request_id::text)'),
    of: `access_requests join tenants using (organisation_id) where ${isUncollected('state')}`,
  },
  settling: {
    since: timeOf('min(batch_id::text)'),
    of: 'unsettled_batches join tenants using (organisation_id)',
  },
} as const;

/** Each statement reads an index or a table that contains only unfinished work. */
export async function waitingWork(
  pool: Pool,
  { deletedOrganisationsKeptDays }: Pick<Config, 'deletedOrganisationsKeptDays'>,
): Promise<Record<string, WaitingWork>> {
  const work = await jobsOf(pool);
  for (const [kind, { since, of }] of Object.entries(counted)) work[kind] = await countOf(pool, since, of);
  // A cluster runs the subquery with an offset separately, and joins its result with the table on the coordinator.
  work.removals = await countOf(
    pool,
    'min(coalesce(r.stepped_at, o.deleted_at + make_interval(days => $1)))',
    `organisations o left join (
       select organisation_id, stepped_at from removals offset 0) as r using (organisation_id)
     where o.deleted_at is not null
       and (o.removal_started_at is not null or o.deleted_at < now() - make_interval(days => $1))`,
    [deletedOrganisationsKeptDays],
  );
  return work;
}

async function jobsOf(pool: Pool): Promise<Record<string, WaitingWork>> {
  const { rows } = await pool.query<WaitingWork & { kind: string }>(
    `select kind, count(*)::integer as waiting, ${secondsSince('min(since)')} from jobs
     where kind = any ($1::text[]) group by kind`,
    [countedJobs],
  );
  const kinds = countedJobs.map((kind) => {
    const { waiting = 0, oldestSeconds = 0 } = rows.find((row) => row.kind === kind) ?? {};
    return [kind, { waiting, oldestSeconds }];
  });
  return Object.fromEntries(kinds);
}

function countOf(pool: Pool, since: string, of: string, values: unknown[] = []): Promise<WaitingWork> {
  const text = `select count(*)::integer as waiting, ${secondsSince(since)} from ${of}`;
  return queryRow<WaitingWork>(pool, { text, values });
}

/** The time in a UUIDv7, in SQL. */
function timeOf(id: string): string {
  return `to_timestamp(('x' || left(replace(${id}, '-', ''), 12))::bit(48)::bigint / 1000.0)`;
}

function secondsSince(time: string): string {
  return `coalesce(greatest(0, extract(epoch from now() - ${time})), 0)::double precision as "oldestSeconds"`;
}
