import type { Pool } from './pool.ts';

/** The functions are the owner's, because the service may not create or drop tables. */
export interface TimePartitions {
  readonly tables: readonly string[];
  readonly detach: string;
  readonly drop: string;
}

/** `ahead` counts days or weeks: the function knows the width of a partition. */
export async function makePartitions(pool: Pool, ensure: string, ahead: number): Promise<void> {
  await pool.query(`select ${ensure}($1)`, [ahead]);
}

/** Drops what ended more than `daysKept` days ago, and what an earlier run detached but did not drop. */
export async function dropPartitions(
  pool: Pool,
  { tables, detach, drop }: TimePartitions,
  daysKept: number,
  stopping?: AbortSignal,
): Promise<void> {
  for (let isDetached: boolean | undefined = true; isDetached && !stopping?.aborted; ) {
    const text = `select ${detach}($1) as is_detached`;
    const { rows } = await pool.query<{ is_detached: boolean }>(text, [daysKept]);
    isDetached = rows[0]?.is_detached;
  }
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname ~ $1`,
    [`^to_drop_(${tables.join('|')})_\\d{4}_\\d\\d_\\d\\d$`],
  );
  for (const { name } of rows) await pool.query(`select ${drop}($1)`, [name]);
}
