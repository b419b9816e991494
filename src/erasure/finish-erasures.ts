import type { Pool } from '../postgres/pool.ts';

/**
 * The last entries in the change log are written before COMMIT, and after the time in `swept_at`, which may be on the
 * previous day. No transaction takes this long.
 */
const entriesWrittenWithin = '1 hour';

/**
 * Erasures are done once the change log has no day left that may contain one of their entries. Must run after the chore
 * that drops old days.
 */
export async function finishErasures(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ oldest: string | null }>(
    `select min(to_date(right(c.relname, 10), 'YYYY_MM_DD'))::text as oldest from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
       and c.relname ~ '^(to_drop_)?changes_\\d{4}_\\d\\d_\\d\\d$'`,
  );
  const oldest = rows[0]?.oldest;
  if (oldest)
    await pool.query(
      `update erasures set state = 'done', done_at = $1
       where state = 'swept' and swept_at < $2::timestamptz - interval '${entriesWrittenWithin}'`,
      [new Date(), `${oldest}T00:00:00Z`],
    );
}
