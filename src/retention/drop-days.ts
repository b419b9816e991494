// retention/: deletes data that has exceeded its organisation's retention.

import { randomUUIDv7 } from 'node:crypto';
import { Round } from '../jobs/round.ts';
import { dropDetached, runLong } from '../jobs/time-partitions.ts';
import type { Pool } from '../postgres/pool.ts';
import { retentionLimits } from './limits.ts';

const partitions = { tables: ['interactions'], drop: 'drop_detached_interactions' };

/**
 * Notes what has expired, and drops days of interactions that no organisation keeps any more, oldest first. `at`
 * decides what has expired, and null is the current time. Checks only days that have just expired for an organisation,
 * because finding the organisations with rows in a day requires a scan of that day. So this has to succeed before rows
 * are deleted one by one: an empty day would not be checked again.
 */
export async function dropExpiredDays(
  pool: Pool,
  stopping?: AbortSignal,
  at: Date | null = null,
): Promise<void> {
  await pool.query('select begin_expiry($1)', [at]);
  const round = new Round(retentionLimits.dropMs, stopping);
  const { rows: expired } = await pool.query<{ first_id: string; end_id: string }>(
    `select min(deleted_below::text) as first_id, expired_below as end_id from retention_progress
     where type = 'interactions' and deleted_below < expired_below group by expired_below`,
  );
  const { rows: days } = await pool.query<{ name: string; end_id: string }>(
    'select name, end_id from interaction_partitions order by first_id',
  );
  const isExpired = (day: { end_id: string }) =>
    expired.some(({ first_id, end_id }) => first_id < day.end_id && day.end_id <= end_id);
  for (const { name } of days.filter(isExpired)) {
    if (round.isOver) break;
    const detach = {
      text: 'select detach_expired_interactions($1, $2, $3) as is_detached',
      values: [name, randomUUIDv7(), at],
    };
    await runLong(pool, detach, retentionLimits.detachMsMax, stopping);
  }
  await dropDetached(pool, partitions, new Round(retentionLimits.dropMs, stopping));
}
