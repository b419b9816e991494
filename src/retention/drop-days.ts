// retention/: deletes data that has exceeded its organisation's retention.

import { randomUUIDv7 } from 'node:crypto';
import type { Pool } from '../postgres/pool.ts';
import { dropDetached, runLong } from '../postgres/time-partitions.ts';
import { retentionLimits } from './limits.ts';

export interface Run {
  /** The time that decides what has expired, or null for the current time. */
  readonly at: Date | null;
  /** The time limit for dropping days. The same limit applies to deleting rows afterwards. */
  readonly runMs: number;
  readonly stopping: AbortSignal | undefined;
}

const partitions = { tables: ['interactions'], drop: 'drop_detached_interactions' };

/**
 * Drops days of interactions that no organisation keeps any more, oldest first. Checks only days that have just expired
 * for an organisation, because finding the organisations with rows in a day requires a scan of that day.
 */
export async function dropExpiredDays(pool: Pool, { at, runMs, stopping }: Run): Promise<void> {
  const deadlineMs = performance.now() + runMs;
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
    if (stopping?.aborted || performance.now() > deadlineMs) break;
    const detach = {
      text: 'select detach_expired_interactions($1, $2, $3) as is_detached',
      values: [name, randomUUIDv7(), at],
    };
    await runLong(pool, detach, retentionLimits.detachMsMax, stopping);
  }
  await dropDetached(pool, partitions);
}
