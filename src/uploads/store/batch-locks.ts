// uploads/store/: stores a checked batch in PostgreSQL, in one transaction.

import { limits } from '../../limits.ts';
import { type Client, isLockTimeout } from '../../postgres/pool.ts';

/**
 * Takes a shared lock on the organisation's batches of a type, so that they run side by side. A retry takes it
 * exclusively and runs alone, after those under way and before later ones; otherwise they could overtake it until it
 * has run out of attempts. Must be the first statement of a transaction, since waiting while holding other locks could
 * deadlock; statements sent after it wait with it.
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
 * Replays of one type take turns, a batch each. Waits until no other is running; false if that takes too long, and then
 * the transaction has failed.
 */
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
