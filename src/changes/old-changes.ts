import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { numberChanges } from './change-log.ts';

/** The log is partitioned by day, by functions of the owner; the service itself may create nothing. */
export async function ensureChangePartitions(pool: Pool, daysAhead: number): Promise<void> {
  await pool.query('select ensure_change_partitions($1)', [daysAhead]);
}

/**
 * Numbers the changes of all organisations, so that those that nobody reads do not pile up: whoever begins to read would
 * have to wait until a week of them is numbered.
 */
export async function numberForAll(pool: Pool, stopping?: AbortSignal): Promise<void> {
  for (let found: number = limits.purgeRowsMax; found === limits.purgeRowsMax; ) {
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select distinct organisation_id from changes where number is null limit ${limits.purgeRowsMax}`,
    );
    found = rows.length;
    for (const { organisation_id } of rows) {
      if (stopping?.aborted) return;
      while ((await numberChanges(pool, organisation_id)) === limits.changesNumberedAtOnce);
    }
  }
}

/**
 * Drops the days that ended so many days ago, and whatever an earlier run has detached and not dropped. What goes is noted
 * first, so that a reader which has not come so far is told that its cursor is too old.
 */
export async function dropOldChanges(pool: Pool, daysKept: number, stopping?: AbortSignal): Promise<void> {
  await numberForAll(pool, stopping);
  if (stopping?.aborted) return;
  const { rows } = await pool.query<{ first_kept: string }>(
    `select uuid_floor(date_trunc('day', now() - make_interval(days => $1), 'UTC')) as first_kept`,
    [daysKept],
  );
  await pool.query(
    `insert into change_counters as c (organisation_id, last_number, forgotten_number)
     select organisation_id, max(number), max(number) from changes where change_id < '${rows[0]?.first_kept}'
     group by organisation_id having max(number) is not null
     on conflict (organisation_id) do update
       set forgotten_number = greatest(c.forgotten_number, excluded.forgotten_number)`,
  );
  for (let isDetached: boolean | undefined = true; isDetached && !stopping?.aborted; ) {
    const detached = await pool.query<{ is_detached: boolean }>(
      'select detach_change_partition($1) as is_detached',
      [daysKept],
    );
    isDetached = detached.rows[0]?.is_detached;
  }
  const { rows: left } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname ~ '^to_drop_changes_\\d{4}_\\d\\d_\\d\\d$'`,
  );
  for (const { name } of left) await pool.query('select drop_detached_changes($1)', [name]);
}
