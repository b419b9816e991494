import type { Pool } from './pool.ts';

/** Receipts and rejections are partitioned by week, by functions of the owner; the service itself may create nothing. */
export async function ensureWeeklyPartitions(pool: Pool, weeksAhead: number): Promise<void> {
  await pool.query('select ensure_weekly_partitions($1)', [weeksAhead]);
}

/** Drops the weeks that ended so many days ago, table by table. */
export async function dropWeeklyPartitions(pool: Pool, daysKept: number): Promise<void> {
  for (let dropped: boolean | undefined = true; dropped; ) {
    const { rows } = await pool.query<{ dropped: boolean }>('select drop_weekly_partition($1) as dropped', [
      daysKept,
    ]);
    dropped = rows[0]?.dropped;
  }
}
