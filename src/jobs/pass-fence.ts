import { runningTransactions } from '../postgres/cluster/running-transactions.ts';
import type { Pool } from '../postgres/pool.ts';

/** The transactions that the fence waits for, and what its job needs afterwards. */
export type Fence<T> = T & { readonly awaited?: readonly string[] };

/** Returns undefined while it waits for the transactions that were running at the first call. */
export async function passFence<T>(
  pool: Pool,
  position: Fence<T>,
): Promise<'passed' | { readonly step: 'fence'; readonly position: Fence<T> } | undefined> {
  const { awaited } = position;
  const running = await runningTransactions(pool);
  const left = awaited ? running.filter((one) => awaited.includes(one)) : running;
  if (left.length === 0) return 'passed';
  return awaited ? undefined : { step: 'fence', position: { ...position, awaited: left } };
}
