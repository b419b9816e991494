import type { Pool } from '../postgres/pool.ts';

const dayMs = 86_400_000;

/**
 * Marks an erasure as done once the day with its last change log entries has been dropped. Must run after the chore that
 * drops old days.
 */
export async function finishErasures(pool: Pool): Promise<void> {
  const { rows: days } = await pool.query<{ day: string }>(
    `select distinct to_char(swept_at at time zone 'UTC', 'YYYY-MM-DD') as day from erasures where state = 'swept'`,
  );
  for (const { day } of days) {
    const { rows } = await pool.query<{ is_there: boolean }>(
      'select to_regclass($1) is not null as is_there',
      [`public.changes_${day.replaceAll('-', '_')}`],
    );
    if (rows[0]?.is_there) continue;
    const began = new Date(day);
    await pool.query(
      `update erasures set state = 'done', done_at = $1 where state = 'swept' and swept_at >= $2 and swept_at < $3`,
      [new Date(), began, new Date(began.getTime() + dayMs)],
    );
  }
}
