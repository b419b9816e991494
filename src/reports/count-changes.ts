// reports/: revenue from recommendations, counted in steps from the change log (see docs/uploading/recommendations.md).

import type { Client } from '../postgres/pool.ts';
import { creditCodes, creditTransactions, findTransactions, transactionsAfter } from './count-credits.ts';
import { addInteractions, addTouches, addVisits, type Which } from './count-touches.ts';

export interface Changed {
  readonly interactions: Which;
  readonly transactions: readonly string[];
}

/**
 * The caller's transaction must be repeatable read and must have locked the organisation's report_progress row. Ids
 * that are already counted change nothing, so a step may also be given old ids.
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
  const { stored, erased } = await findTransactions(client, organisationId, changed.transactions);
  const isChanged = new Set([...stored, ...erased]);
  const unchanged = credited.filter((id) => !isChanged.has(id));
  if (isChanged.size + unchanged.length > 0)
    await creditTransactions(client, organisationId, step, { stored, erased, unchanged });
}
