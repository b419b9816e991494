// retention/: deletes data that has exceeded its organisation's retention.

import { randomUUIDv7 } from 'node:crypto';
import { type JobKind, jobKind, type Next, type Step } from '../jobs/job.ts';
import { Round } from '../jobs/round.ts';
import { dropDetached, runLong } from '../jobs/time-partitions.ts';
import type { Pool } from '../postgres/pool.ts';
import { databaseTime, queryRow, retryConflicts } from '../postgres/transactions.ts';
import { expiredBelow, keptDaysOf } from './kept-days.ts';
import { retentionLimits } from './limits.ts';

const partitions = { tables: ['interactions'], drop: 'drop_detached_interactions' };

/**
 * Notes what has expired at `at`, or now, and drops days that no organisation keeps any more. Finding the organisations
 * with rows in a day requires a scan, so only days that have just expired for an organisation are checked. This has
 * to succeed before rows are deleted one by one, because an empty day would not be checked again.
 */
export async function dropExpiredDays(
  pool: Pool,
  stopping?: AbortSignal,
  at: Date | null = null,
): Promise<void> {
  await pool.query('select begin_expiry($1)', [at]);
  const round = new Round(retentionLimits.dropMs, stopping);
  const { rows: expired } = await pool.query<{ first_id: string; end_id: string }>(
    `select min(deleted_below::text) as first_id, expired_below as end_id from retention_progress
     where type = 'interactions' and deleted_below < expired_below group by expired_below`,
  );
  const { rows: days } = await pool.query<{ name: string; end_id: string }>(
    'select name, end_id from interaction_partitions order by first_id',
  );
  const isExpired = (day: { end_id: string }) =>
    expired.some(({ first_id, end_id }) => first_id < day.end_id && day.end_id <= end_id);
  // Right after each day is detached, because erasures wait for it.
  const drop = () => dropDetached(pool, partitions, new Round(retentionLimits.dropMs, stopping));
  for (const { name } of days.filter(isExpired)) {
    if (round.isOver) break;
    const detach = {
      text: 'select detach_expired_interactions($1, $2, $3) as is_detached',
      values: [name, randomUUIDv7(), at],
    };
    await runLong(pool, detach, retentionLimits.detachMsMax, stopping);
    await drop();
  }
  await drop();
}

/** The rows of `tables`, with their ids, are deleted step by step by functions that run with the owner's permissions. */
const expiring = {
  interactions: {
    tables: { interactions: 'interaction_id' },
    step: (organisationId: string) => ({
      text: 'select expire_interactions($1, $2, $3) as has_more',
      values: [organisationId, randomUUIDv7(), retentionLimits.rowsPerStep],
    }),
  },
  receipts: {
    tables: { receipts: 'request_id', runs: 'run_id' },
    step: (organisationId: string) => ({
      text: 'select expire_receipts($1, $2) as has_more',
      values: [organisationId, retentionLimits.receiptsPerStep],
    }),
  },
} as const;

type Expiring = keyof typeof expiring;

/** They run on the cluster node that stores the organisation's rows. */
export const expiryFunctions = Object.keys(expiring).map((type) => `expire_${type}`);

interface Due {
  readonly organisation_id: string;
  readonly expired_below: string;
}

/**
 * Deletes what `dropExpiredDays` has noted, if it has expired at `at`, or now. Each step saves its own progress in
 * `retention_progress`, which readers use too, so a step that is repeated continues.
 */
export function expireRows(at: Date | null = null): JobKind {
  const step = (type: Expiring, then: Next<Expiring>): Step<Expiring> => ({
    call: async (pool, { organisationId }) =>
      (await expireSome(pool, type, organisationId, at)) ? { step: type } : then,
  });
  return jobKind<Expiring>({
    name: 'retention',
    first: 'interactions',
    async find(pool) {
      const found = new Set<string>();
      for (const type of Object.keys(expiring) as Expiring[])
        for (const organisationId of await skipEmpty(pool, type)) found.add(organisationId);
      return [...found];
    },
    steps: { interactions: step('interactions', { step: 'receipts' }), receipts: step('receipts', 'ended') },
  });
}

/**
 * Returns the organisations with rows to delete, and marks the others as done. Which ones are due is read first, so that
 * an organisation of which more expires before the search for rows is not marked.
 */
async function skipEmpty(pool: Pool, type: Expiring): Promise<ReadonlySet<string>> {
  const { rows: due } = await pool.query<Due>(
    `select organisation_id, expired_below from retention_progress where type = $1 and deleted_below < expired_below`,
    [type],
  );
  if (due.length === 0) return new Set();
  const withRows = await organisationsWithRows(pool, type);
  const others = due.filter(({ organisation_id }) => !withRows.has(organisation_id));
  await skip(pool, type, others);
  return withRows;
}

/** Even a day after the last run, most organisations have nothing to delete, so one statement for each table finds the others. */
async function organisationsWithRows(pool: Pool, type: Expiring): Promise<Set<string>> {
  const found = new Set<string>();
  for (const [table, id] of Object.entries(expiring[type].tables)) {
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select p.organisation_id
       from retention_progress p cross join lateral (
         select r.${id} from ${table} r
         where r.organisation_id = p.organisation_id and r.${id} >= p.deleted_below
           and r.${id} < p.expired_below
         order by r.${id} limit 1) old
       where p.type = $1 and p.deleted_below < p.expired_below`,
      [type],
    );
    for (const { organisation_id } of rows) found.add(organisation_id);
  }
  return found;
}

/** Changes nothing if more rows have expired in the meantime. */
async function skip(pool: Pool, type: Expiring, done: readonly Due[]): Promise<void> {
  for (const [below, some] of Map.groupBy(done, ({ expired_below }) => expired_below))
    await pool.query(
      `update retention_progress set deleted_below = $2::uuid
       where type = $1 and expired_below = $2::uuid and organisation_id = any ($3::uuid[])`,
      [type, below, some.map(({ organisation_id }) => organisation_id)],
    );
}

/** Returns true if there may be more. Deletes nothing if the operator has changed the setting in the meantime. */
async function expireSome(
  pool: Pool,
  type: Expiring,
  organisationId: string,
  at: Date | null,
): Promise<boolean> {
  const days = await keptDaysOf(pool, organisationId, type);
  if (days === null) return false;
  const { rows } = await pool.query<{ expired_below: string }>(
    'select expired_below from retention_progress where organisation_id = $1 and type = $2',
    [organisationId, type],
  );
  const [progress] = rows;
  if (!progress) return false;
  if (expiredBelow(days, at ?? (await databaseTime(pool))) < progress.expired_below) return false;
  const { has_more } = await retryConflicts(() =>
    queryRow<{ has_more: boolean }>(pool, expiring[type].step(organisationId)),
  );
  return has_more;
}
