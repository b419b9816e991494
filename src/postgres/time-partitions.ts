import type { QueryResultRow } from 'pg';
import { limits } from '../limits.ts';
import type { Pool } from './pool.ts';
import { inTransaction } from './transactions.ts';

/**
 * The names of a partitioned table and of the functions that detach and drop its partitions. The functions run with the
 * owner's permissions, because the service may not create or drop tables.
 */
export interface TimePartitions {
  readonly tables: readonly string[];
  readonly detach: string;
  readonly drop: string;
}

/**
 * Creates partitions in advance. `ahead` is a number of days or weeks, depending on how wide the table's partitions are.
 */
export async function makePartitions(pool: Pool, ensure: string, ahead: number): Promise<void> {
  await pool.query(`select ${ensure}($1)`, [ahead]);
}

/**
 * Drops partitions that ended more than `daysKept` days ago, and partitions that an earlier run detached but did not drop.
 */
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

/** Drops detached partitions. */
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
 * Runs a statement on a whole partition in its own transaction, with a longer timeout than usual. The statement is
 * cancelled when the process stops. Returns undefined if the process had already stopped.
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
    // Without the explicit type, the call would be ambiguous in a cluster.
    const cancel = () =>
      void pool.query('select pg_cancel_backend($1::integer)', [own[0]?.pid]).catch(() => {});
    if (stopping?.aborted) return undefined;
    stopping?.addEventListener('abort', cancel, { once: true });
    // Without this, the driver's own timeout would expire before PostgreSQL's.
    const long = { ...statement, query_timeout: msMax + limits.databaseGraceMs };
    const { rows } = await client
      .query<R>(long)
      .finally(() => stopping?.removeEventListener('abort', cancel));
    return rows[0];
  });
}
