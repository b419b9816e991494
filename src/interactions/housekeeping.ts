import { limits } from '../limits.ts';
import { purgeIdempotencyKeys } from '../store/idempotency-keys.ts';
import { ensurePartitions } from '../store/interactions.ts';
import type { Pool } from '../store/pool.ts';

/**
 * What interactions need done now and then: partitions for the months ahead, and idempotency keys forgotten after their
 * day. Every process does it; the work is idempotent and what is done already costs next to nothing.
 */
export async function keepHouse(pool: Pool): Promise<void> {
  const done = await Promise.allSettled([
    ensurePartitions(pool, limits.interactionPartitionsAheadMonths),
    purgeIdempotencyKeys(pool, 'interaction', new Date(Date.now() - limits.idempotencyKeyLifeMs)),
  ]);
  const failure = done.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
}
