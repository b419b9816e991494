import { RequestError } from '../errors.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';

/**
 * Allows the people of a swept erasure to be stored again, unless another erasure covers them too, and returns how many
 * ids were suppressed. Throws while the lake's files may still contain these people, because their rows in the lake are
 * found by the hashes of the suppressed ids. The hashes are kept, so that the erasure can be repeated after a restore.
 * The version stays the same: other processes look up every id that may be suppressed.
 */
export function liftSuppression(pool: Pool, organisationId: string, erasureId: string): Promise<number> {
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      const { rows } = await client.query<{ can_be_lifted: boolean }>(
        `select swept_at is not null and coalesce(lake_state, 'done') = 'done' as can_be_lifted
         from erasures where organisation_id = $1 and erasure_id = $2 for share`,
        [organisationId, erasureId],
      );
      const [found] = rows;
      if (!found) throw new RequestError('erasure_not_found');
      if (!found.can_be_lifted) throw new RequestError('erasure_not_swept');
      const { rowCount } = await client.query(
        `update suppressions set lifted_at = $3
         where organisation_id = $1 and erasure_id = $2 and lifted_at is null`,
        [organisationId, erasureId, new Date()],
      );
      return rowCount ?? 0;
    }),
  );
}
