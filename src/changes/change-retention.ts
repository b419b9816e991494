import { Round } from '../jobs/round.ts';
import { dropPartitions } from '../jobs/time-partitions.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { numberChanges } from './change-log.ts';

const partitions = { tables: ['changes'], detach: 'detach_change_partition', drop: 'drop_detached_changes' };

/**
 * Changes get numbers even if an organisation has no readers. Otherwise an organisation's first reader would have to
 * wait while a week of changes is numbered. The organisations take turns, in random order, because a round may end
 * before the last of them.
 */
export function numberForAll(pool: Pool, round = new Round()): Promise<'more' | 'all'> {
  const waiting: string[] = [];
  let isFull = true;
  return round.repeat(async () => {
    if (waiting.length === 0 && isFull) {
      const { rows } = await pool.query<{ organisation_id: string }>(
        `select organisation_id from (select distinct organisation_id from changes where number is null) as unnumbered
         order by random() limit ${limits.purgeRowsMax}`,
      );
      waiting.push(...rows.map(({ organisation_id }) => organisation_id));
      isFull = rows.length === limits.purgeRowsMax;
    }
    const next = waiting.shift();
    if (next === undefined) return false;
    const { count } = await numberChanges(pool, next);
    if (count === limits.changesNumberedAtOnce) waiting.push(next);
    return waiting.length > 0 || isFull;
  });
}

/**
 * Drops a day once all of its changes are numbered. It first saves the highest dropped number, so that a reader with an
 * older cursor gets a 410. It does not wait for reports that have not counted the day yet: all organisations share the
 * log, so a single failing report would keep everyone's changes. A report that has missed changes reads the tables
 * instead.
 */
export async function dropOldChanges(
  pool: Pool,
  daysKept: number,
  round = new Round(),
): Promise<'more' | 'all'> {
  const { rows } = await pool.query<{ first_kept: string }>(
    `select uuid_floor(date_trunc('day', now() - make_interval(days => $1), 'UTC')) as first_kept`,
    [daysKept],
  );
  const firstKept = rows[0]?.first_kept;
  const { rows: unnumbered } = await pool.query(
    `select from changes where number is null and change_id < '${firstKept}' limit 1`,
  );
  if (unnumbered.length > 0) return 'more';
  await pool.query(
    `insert into change_counters as c (organisation_id, last_number, forgotten_number)
     select organisation_id, max(number), max(number) from changes where change_id < '${firstKept}'
     group by organisation_id having max(number) is not null
     on conflict (organisation_id) do update
       set forgotten_number = greatest(c.forgotten_number, excluded.forgotten_number)`,
  );
  return dropPartitions(pool, partitions, daysKept, round);
}
