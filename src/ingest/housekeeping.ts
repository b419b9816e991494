import { limits } from '../limits.ts';
import { purgeIdempotencyKeys } from '../store/idempotency-keys.ts';
import type { Pool } from '../store/pool.ts';
import { organisationsWithChanges, rollUpCounts } from '../store/record-counts.ts';
import { closeIfNone, openMarks } from '../store/rejections.ts';
import { dropWeeklyPartitions, ensureWeeklyPartitions } from '../store/weekly-partitions.ts';

/**
 * What uploads need done now and then: partitions for the weeks ahead, those that are old dropped, keys forgotten after
 * their day, marks removed that mark nothing. Every process does it; what is done already costs next to nothing.
 */
export async function keepHouse(pool: Pool, daysKept: number): Promise<void> {
  const done = await Promise.allSettled([
    ensureWeeklyPartitions(pool, limits.weeklyPartitionsAhead).then(() =>
      dropWeeklyPartitions(pool, daysKept),
    ),
    purgeIdempotencyKeys(pool, 'upload', new Date(Date.now() - limits.idempotencyKeyLifeMs)),
    removeMarks(pool),
  ]);
  const failure = done.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
}

async function removeMarks(pool: Pool): Promise<void> {
  const marks = await openMarks(pool, new Date(Date.now() - limits.openMarkLifeMs), limits.openMarksMax);
  for (const { organisation_id, type } of marks) await closeIfNone(pool, organisation_id, type);
}

/** Often enough that the differences of a busy organisation stay few. */
export async function rollUp(pool: Pool): Promise<void> {
  for (const organisationId of await organisationsWithChanges(pool, limits.countedOrganisationsMax))
    await rollUpCounts(pool, organisationId);
}
