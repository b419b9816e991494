import { Round } from '../jobs/round.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { runLimits } from './limits.ts';

/** Runs are kept as long as receipts, of which whole weeks are dropped. */
export function purgeRuns(pool: Pool, receiptsKeptDays: number, round?: Round): Promise<'more' | 'all'> {
  const week = `date_trunc('week', now() - make_interval(days => $1), 'UTC')`;
  return purge(
    pool,
    { table: 'runs', id: 'run_id', type: 'uuid', below: `uuid_floor(${week})` },
    receiptsKeptDays,
    round,
  );
}

export function purgeFileClaims(pool: Pool, round?: Round): Promise<'more' | 'all'> {
  const below = 'now() - make_interval(days => $1)';
  const table = { table: 'run_file_claims', id: 'claimed_at', type: 'timestamptz', below };
  return purge(pool, table, runLimits.fileClaimDays, round);
}

interface Purged {
  readonly table: string;
  readonly id: string;
  readonly type: string;
  /** The first `id` that is kept. */
  readonly below: string;
}

/** The oldest first, of all organisations together. */
async function purge(
  pool: Pool,
  { table, id, type, below }: Purged,
  days: number,
  round = new Round(),
): Promise<'more' | 'all'> {
  return round.repeat(async () => {
    const { rows } = await pool.query<{ organisation_id: string; id: string }>(
      `select organisation_id, ${id}::text as id from ${table} where ${id} < ${below} order by ${table}.${id} limit ${limits.purgeRowsMax}`,
      [days],
    );
    if (rows.length === 0) return false;
    // With a subquery, PostgreSQL would read the whole table.
    await pool.query(
      `delete from ${table} t using unnest($1::uuid[], $2::${type}[]) as old(organisation_id, id)
       where t.organisation_id = old.organisation_id and t.${id} = old.id`,
      [rows.map(({ organisation_id }) => organisation_id), rows.map((row) => row.id)],
    );
    return rows.length === limits.purgeRowsMax;
  });
}
