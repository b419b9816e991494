// uploads/store/: a checked batch into PostgreSQL, in one transaction.

import { limits } from '../../limits.ts';
import { type Client, isLockTimeout } from '../../postgres/pool.ts';

/**
 * Stores records of a type beside others who do, or, where it begins again, alone: once those have ended, and before any
 * that comes later. Otherwise they could overtake it until it has run out of attempts. To be sent first in a transaction,
 * for whoever holds something else could be waited for; what is sent after it waits with it.
 */
export async function enterBatch(
  client: Client,
  attempt: number,
  organisationId: string,
  type: string,
): Promise<void> {
  const isAlone = attempt > 1;
  await client.query({
    name: isAlone ? 'enter batch alone' : 'enter batch',
    text: `select pg_advisory_xact_lock${isAlone ? '' : '_shared'}(hashtextextended($1, 0))`,
    values: [`batches ${organisationId} ${type}`],
  });
}

/**
 * Replays of one type take turns, a batch each. Waits until no other is at it; false where that takes too long, and then
 * the transaction has failed.
 */
export async function waitForTurn(client: Client, organisationId: string, type: string): Promise<boolean> {
  try {
    await Promise.all([
      client.query(`set local lock_timeout = ${limits.replayTurnMs}`),
      client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `replay ${organisationId} ${type}`,
      ]),
      client.query('set local lock_timeout = 0'),
    ]);
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}
