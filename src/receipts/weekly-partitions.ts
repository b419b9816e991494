import type { Pool } from '../postgres/pool.ts';

/** Makes partitions by week through a function of the owner, because the service may not create tables. */
export async function ensureWeeklyPartitions(pool: Pool, weeksAhead: number): Promise<void> {
  await pool.query('select ensure_weekly_partitions($1)', [weeksAhead]);
}

/**
 * Drops the weeks that ended more than `daysKept` days ago, and partitions that an earlier run detached but did not
 * drop.
 */
export async function dropWeeklyPartitions(
  pool: Pool,
  daysKept: number,
  stopping?: AbortSignal,
): Promise<void> {
  for (let detached: boolean | undefined = true; detached && !stopping?.aborted; ) {
    const { rows } = await pool.query<{ detached: boolean }>(
      'select detach_weekly_partition($1) as detached',
      [daysKept],
    );
    detached = rows[0]?.detached;
  }
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r'
       and relname ~ '^to_drop_(receipts|receipt_batches)_\\d{4}_\\d\\d_\\d\\d$'`,
  );
  for (const { name } of rows) await pool.query('select drop_detached_partition($1)', [name]);
}
