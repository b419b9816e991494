import type { Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { nextVersion } from './request-erasure.ts';

/** Lets the people of an erasure that is swept come back; returns how many ids were suppressed. */
export function liftSuppression(pool: Pool, organisationId: string, erasureId: string): Promise<number> {
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await nextVersion(client, organisationId);
      const { rowCount } = await client.query(
        'delete from suppressions where organisation_id = $1 and erasure_id = $2',
        [organisationId, erasureId],
      );
      return rowCount ?? 0;
    }),
  );
}
