import type { Client } from '../postgres/pool.ts';
import { creditCodes, creditTransactions, transactionsAfter } from './count-credits.ts';
import { addInteractions, addTouches, addVisits, type Which } from './count-touches.ts';

/** What a step counts: interactions, and the ids of transactions, that are new or have changed. */
export interface Changed {
  readonly interactions: Which;
  readonly transactions: readonly string[];
}

/**
 * Counts what is new or has changed, in the caller's transaction, which is repeatable read and holds the organisation's row of
 * report_progress. Ids that are counted already change nothing, so a step may be given more than is new.
 */
export async function countChanges(
  client: Client,
  organisationId: string,
  step: string,
  changed: Changed,
): Promise<void> {
  let credited: string[] = [];
  if ((await addInteractions(client, organisationId, step, changed.interactions)) > 0) {
    await addVisits(client, organisationId, step);
    await addTouches(client, organisationId, step);
    await creditCodes(client, organisationId, step);
    credited = await transactionsAfter(client, organisationId, step);
  }
  const isChanged = new Set(changed.transactions);
  const unchanged = credited.filter((id) => !isChanged.has(id));
  if (isChanged.size + unchanged.length > 0)
    await creditTransactions(client, organisationId, step, [...isChanged], unchanged);
}
