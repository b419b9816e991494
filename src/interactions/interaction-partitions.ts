import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';

/** The number of days ahead that have partitions. */
export async function daysAhead(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ last: string | null }>(
    'select max(end_id::text) as last from interaction_partitions',
  );
  const last = rows[0]?.last;
  return last ? (msOfUuidV7(last) - Date.now()) / dayMs : 0;
}

const dayMs = 24 * 3_600_000;

/** Builds the indexes of past days, the newest first, one index per transaction. */
export async function indexPartitions(pool: Pool, stopping?: AbortSignal): Promise<void> {
  for (let isBuilt: boolean | undefined = true; isBuilt && !stopping?.aborted; ) {
    isBuilt = await inTransaction(pool, async (client) => {
      await client.query(`set local statement_timeout = ${limits.indexBuildMsMax}`);
      const { rows: own } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      // Without the type it could be either of two functions in a cluster.
      const cancel = () =>
        void pool.query('select pg_cancel_backend($1::integer)', [own[0]?.pid]).catch(() => {});
      if (stopping?.aborted) return false;
      stopping?.addEventListener('abort', cancel, { once: true });
      // The driver's own timeout would end it before PostgreSQL does.
      const build = {
        text: 'select index_interaction_partition() as is_built',
        query_timeout: limits.indexBuildMsMax + limits.databaseGraceMs,
      };
      const { rows } = await client
        .query<{ is_built: boolean }>(build)
        .finally(() => stopping?.removeEventListener('abort', cancel));
      return rows[0]?.is_built;
    });
  }
}

/** Adjacent partitions that all have the indexes of past days, or all lack them. */
export interface Span {
  /** The smallest id it can hold. */
  readonly firstId: string;
  readonly isIndexed: boolean;
}

/** The newest span with ids below the given one, if any. */
export async function spanBelow(pool: Pool, below: string): Promise<Span | undefined> {
  const { rows } = await pool.query<{ first_id: string; is_indexed: boolean }>({
    name: 'interaction partitions',
    text: `select first_id, is_indexed from interaction_partitions where first_id < $1
           order by first_id desc limit ${limits.interactionDaysPerLookMax}`,
    values: [below],
  });
  const [newest] = rows;
  if (!newest) return undefined;
  const end = rows.findIndex(({ is_indexed }) => is_indexed !== newest.is_indexed);
  const oldest = rows.at(end === -1 ? -1 : end - 1) ?? newest;
  return { firstId: oldest.first_id, isIndexed: newest.is_indexed };
}
