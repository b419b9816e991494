// uploads/store/: stores a checked batch in PostgreSQL in one transaction.

import { limits } from '../../limits.ts';
import { type Client, isLockTimeout } from '../../postgres/pool.ts';

/**
 * Batches of a type share the lock. A retry takes it alone, because later batches could otherwise keep overtaking it
 * until it runs out of attempts. This must be the first statement of a transaction, because waiting while holding other
 * locks could cause a deadlock. Statements that are sent after it wait with it.
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

/** Replays of a type take turns, batch by batch. If it returns false, the transaction has failed. */
export async function waitForTurn(client: Client, organisationId: string, type: string): Promise<boolean> {
  try {
    await Promise.all([
      client.query(`set local lock_timeout = ${limits.replayTurnMs}`),
      client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `replay ${organisationId} ${type}`,
      ]),
      client.query(`set local lock_timeout = ${client.lockWaitMs ?? 0}`),
    ]);
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}
