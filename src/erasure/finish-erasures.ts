import type { Pool } from '../postgres/pool.ts';

/**
 * An erasure is done when the day of its last entries in the change log has been dropped. To be called after old days were
 * dropped.
 */
export async function finishErasures(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ day: string | null }>(
    `select to_date(min(right(c.relname, 10)), 'YYYY_MM_DD')::text as day
     from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'changes'::regclass`,
  );
  const oldest = rows[0]?.day;
  if (!oldest) return;
  await pool.query(
    `update erasures set state = 'done', done_at = $1 where state = 'swept' and swept_at < $2`,
    [new Date(), `${oldest}T00:00:00Z`],
  );
}
