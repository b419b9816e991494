import { RequestError } from '../errors.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { nextVersion } from './request-erasure.ts';

/**
 * Allows the people covered by a swept erasure to be stored again, and returns how many of their ids were suppressed.
 * Throws while the lake's files may still contain these people, because their rows in the lake are found by the hashes of
 * the suppressed ids.
 */
export function liftSuppression(pool: Pool, organisationId: string, erasureId: string): Promise<number> {
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await nextVersion(client, organisationId);
      const { rows } = await client.query(
        `select from erasures where organisation_id = $1 and erasure_id = $2 and lake_state in ('pending', 'running')`,
        [organisationId, erasureId],
      );
      if (rows.length > 0) throw new RequestError('erasure_not_swept');
      const { rowCount } = await client.query(
        'delete from suppressions where organisation_id = $1 and erasure_id = $2',
        [organisationId, erasureId],
      );
      return rowCount ?? 0;
    }),
  );
}
