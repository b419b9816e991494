import type { QueryResultRow } from 'pg';
import { limits } from '../limits.ts';
import type { Pool } from './pool.ts';
import { inTransaction } from './transactions.ts';

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
  partitions: TimePartitions,
  daysKept: number,
  stopping?: AbortSignal,
): Promise<void> {
  for (let isDetached: boolean | undefined = true; isDetached && !stopping?.aborted; ) {
    const text = `select ${partitions.detach}($1) as is_detached`;
    const { rows } = await pool.query<{ is_detached: boolean }>(text, [daysKept]);
    isDetached = rows[0]?.is_detached;
  }
  await dropDetached(pool, partitions);
}

/** Drops what was detached. */
export async function dropDetached(
  pool: Pool,
  { tables, drop }: Pick<TimePartitions, 'tables' | 'drop'>,
): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname ~ $1`,
    [`^to_drop_(${tables.join('|')})_\\d{4}_\\d\\d_\\d\\d$`],
  );
  for (const { name } of rows) await pool.query(`select ${drop}($1)`, [name]);
}

/**
 * Runs a statement on a whole partition, which may take longer than others, in a transaction of its own. It is cancelled if the
 * process stops; undefined if it had stopped before.
 */
export function runLong<R extends QueryResultRow>(
  pool: Pool,
  statement: { readonly text: string; readonly values?: unknown[] },
  msMax: number,
  stopping?: AbortSignal,
): Promise<R | undefined> {
  return inTransaction(pool, async (client) => {
    await client.query(`set local statement_timeout = ${msMax}`);
    const { rows: own } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    // Without the type it could be either of two functions in a cluster.
    const cancel = () =>
      void pool.query('select pg_cancel_backend($1::integer)', [own[0]?.pid]).catch(() => {});
    if (stopping?.aborted) return undefined;
    stopping?.addEventListener('abort', cancel, { once: true });
    // The driver's own timeout would end it before PostgreSQL does.
    const long = { ...statement, query_timeout: msMax + limits.databaseGraceMs };
    const { rows } = await client
      .query<R>(long)
      .finally(() => stopping?.removeEventListener('abort', cancel));
    return rows[0];
  });
}
