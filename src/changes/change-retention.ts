import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { dropPartitions } from '../postgres/time-partitions.ts';
import { numberChanges } from './change-log.ts';

const partitions = { tables: ['changes'], detach: 'detach_change_partition', drop: 'drop_detached_changes' };

/**
 * Assigns numbers to all organisations' changes, even if an organisation has no readers. Otherwise an organisation's
 * first reader would have to wait while a week of changes is numbered.
 */
export async function numberForAll(pool: Pool, stopping?: AbortSignal): Promise<void> {
  for (let found: number = limits.purgeRowsMax; found === limits.purgeRowsMax; ) {
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select distinct organisation_id from changes where number is null limit ${limits.purgeRowsMax}`,
    );
    found = rows.length;
    for (const { organisation_id } of rows) {
      if (stopping?.aborted) return;
      while ((await numberChanges(pool, organisation_id)).count === limits.changesNumberedAtOnce);
    }
  }
}

/**
 * Drops the changes from days that ended more than `daysKept` days ago. It first saves the highest dropped number, so
 * that a reader with an older cursor gets a 410. It does not wait for reports that have not counted those days yet. All
 * organisations share the log, so a single failing report would keep everyone's changes. A report that has missed
 * changes reads the tables instead.
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
  await dropPartitions(pool, partitions, daysKept, stopping);
}
