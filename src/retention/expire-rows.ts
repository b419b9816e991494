import { randomUUIDv7 } from 'node:crypto';
import type { Pool } from '../postgres/pool.ts';
import { queryRow, retryConflicts } from '../postgres/transactions.ts';
import { dropExpiredDays, type Run } from './drop-days.ts';
import { expiredBelow, keptDaysOf } from './kept-days.ts';
import { retentionLimits } from './limits.ts';

/** The types whose rows are deleted step by step by functions that run with the owner's permissions. */
const expiring = {
  interactions: {
    id: 'interaction_id',
    step: (organisationId: string) => ({
      text: 'select expire_interactions($1, $2, $3) as has_more',
      values: [organisationId, randomUUIDv7(), retentionLimits.rowsPerStep],
    }),
  },
  receipts: {
    id: 'request_id',
    step: (organisationId: string) => ({
      text: 'select expire_receipts($1, $2) as has_more',
      values: [organisationId, retentionLimits.receiptsPerStep],
    }),
  },
} as const;

type Expiring = keyof typeof expiring;

/** The functions that run on the cluster node that stores the organisation's rows. */
export const expiryFunctions = Object.keys(expiring).map((type) => `expire_${type}`);

/** An organisation's expired data that may not have been deleted yet. */
interface Due {
  readonly organisation_id: string;
  /** All rows with smaller ids have expired. */
  readonly expired_below: string;
}

/**
 * Deletes all organisations' expired interactions and receipts. `at` is the time that decides what has expired, or null
 * for the current time. Days that no organisation keeps are dropped as a whole. Each step is a transaction that also
 * saves the progress, so a process that is killed leaves no partial work behind.
 */
export async function expireRows(
  pool: Pool,
  stopping?: AbortSignal,
  at: Date | null = null,
  runMs: number = retentionLimits.runMs,
): Promise<'more' | 'all'> {
  await pool.query('select begin_expiry($1)', [at]);
  const run = { at, runMs, stopping };
  await dropExpiredDays(pool, run);
  const deadlineMs = performance.now() + runMs;
  let left = 0;
  for (const type of Object.keys(expiring) as Expiring[])
    left += await expireType(pool, type, run, deadlineMs);
  return left > 0 ? 'more' : 'all';
}

/**
 * Runs one step per organisation in turn, so that no organisation has to wait for the largest one. Returns how many
 * organisations are left.
 */
async function expireType(
  pool: Pool,
  type: Expiring,
  { at, stopping }: Run,
  deadlineMs: number,
): Promise<number> {
  const due = await dueOf(pool, type);
  if (due.length === 0) return 0;
  const withRows = await organisationsWithRows(pool, type);
  await skip(
    pool,
    type,
    due.filter(({ organisation_id }) => !withRows.has(organisation_id)),
  );
  const left = due.filter(({ organisation_id }) => withRows.has(organisation_id));
  let failure: unknown;
  let done = 0;
  for (const one of left) {
    if (stopping?.aborted || performance.now() > deadlineMs) break;
    done++;
    const hasMore = await expireStep(pool, type, one, at).catch((error: unknown) => {
      // Continue with the other organisations.
      failure ??= error;
      return false;
    });
    // The loop also visits rows that are pushed while it runs.
    if (hasMore) left.push(one);
  }
  if (failure !== undefined) throw failure;
  return left.length - done;
}

async function dueOf(pool: Pool, type: Expiring): Promise<Due[]> {
  const { rows } = await pool.query<Due>(
    `select organisation_id, expired_below from retention_progress where type = $1 and deleted_below < expired_below`,
    [type],
  );
  return rows;
}

/**
 * Returns the organisations that have expired rows. Even a day after the last run, most organisations have nothing to
 * delete, so a single statement finds the others.
 */
async function organisationsWithRows(pool: Pool, type: Expiring): Promise<Set<string>> {
  const { id } = expiring[type];
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select p.organisation_id
     from retention_progress p cross join lateral (
       select r.${id} from ${type} r
       where r.organisation_id = p.organisation_id and r.${id} >= p.deleted_below
         and r.${id} < p.expired_below
       order by r.${id} limit 1) old
     where p.type = $1 and p.deleted_below < p.expired_below`,
    [type],
  );
  return new Set(rows.map(({ organisation_id }) => organisation_id));
}

/** Records that there is nothing left to delete, unless more rows have expired in the meantime. */
async function skip(pool: Pool, type: Expiring, done: readonly Due[]): Promise<void> {
  for (const [below, some] of Map.groupBy(done, ({ expired_below }) => expired_below))
    await pool.query(
      `update retention_progress set deleted_below = $2::uuid
       where type = $1 and expired_below = $2::uuid and organisation_id = any ($3::uuid[])`,
      [type, below, some.map(({ organisation_id }) => organisation_id)],
    );
}

/**
 * Deletes an organisation's next rows. Returns true if there may be more. Deletes nothing if the operator has changed the
 * setting so that the rows no longer expire.
 */
async function expireStep(pool: Pool, type: Expiring, due: Due, at: Date | null): Promise<boolean> {
  const { organisation_id, expired_below } = due;
  const days = await keptDaysOf(pool, organisation_id, type);
  if (days === null || expiredBelow(days, at ?? new Date()) < expired_below) return false;
  const { has_more } = await retryConflicts(() =>
    queryRow<{ has_more: boolean }>(pool, expiring[type].step(organisation_id)),
  );
  return has_more;
}
