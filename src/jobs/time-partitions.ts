import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { Round } from './round.ts';

/** The functions run with the owner's permissions, because the service may not create or drop tables. */
export interface TimePartitions {
  readonly tables: readonly string[];
  readonly detach: string;
  readonly drop: string;
}

/**
 * Includes partitions that an earlier run detached but did not drop. All are detached first: an answer whose receipt is
 * dropped could not be found by an erasure.
 */
export async function dropPartitions(
  pool: Pool,
  partitions: TimePartitions,
  daysKept: number,
  round = new Round(),
): Promise<'more' | 'all'> {
  const left = await round.repeat(async () => {
    const text = `select ${partitions.detach}($1) as is_detached`;
    const { rows } = await pool.query<{ is_detached: boolean }>(text, [daysKept]);
    return rows[0]?.is_detached;
  });
  return left === 'more' ? left : dropDetached(pool, partitions, round);
}

/** Nobody can read these tables, and no search finds their rows, but the rows are still there. */
export async function detachedTables(pool: Pool, tables: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname ~ $1`,
    [`^to_drop_(${tables.join('|')})_\\d{4}_\\d\\d_\\d\\d$`],
  );
  return rows.map(({ name }) => name);
}

export async function dropDetached(
  pool: Pool,
  { tables, drop }: Pick<TimePartitions, 'tables' | 'drop'>,
  round: Round,
): Promise<'more' | 'all'> {
  const names = await detachedTables(pool, tables);
  return round.repeat(async () => {
    const name = names.shift();
    if (name !== undefined) await pool.query(`select ${drop}($1)`, [name]);
    return names.length > 0;
  });
}

/** Allows a longer timeout than usual. Stopping cancels the statement. Undefined if the process had already stopped. */
export function runLong<R extends Record<string, unknown>>(
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
