import { RequestError } from '../errors.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';

/**
 * Returns how many ids were suppressed. Throws while the lake's files may still contain these people, because their
 * rows there are found by the suppressed hashes. The hashes are kept, so that the erasure can be repeated after a
 * restore. The version stays the same: other processes look up every id that may be suppressed, and do not cache that it
 * exists.
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
        `update suppressions set lifted_at = now()
         where organisation_id = $1 and erasure_id = $2 and lifted_at is null`,
        [organisationId, erasureId],
      );
      return rowCount ?? 0;
    }),
  );
}

/**
 * Repeats what had been lifted before a restore, unless the hashes are still needed to find these people. Each statement
 * reads one table, because PostgreSQL's statistics may not know the organisation yet: joins of its suppressions with
 * themselves then took longer than the statement timeout.
 */
export async function liftAgain(
  client: Pick<Client, 'query'>,
  organisationId: string,
  erasureIds: readonly string[],
): Promise<void> {
  const { rows: lifted } = await client.query<{ erasure_id: string; lifted_before: string }>({
    name: 'suppressions lifted before a restore',
    text: `
      select erasure_id, max(lifted_before) as lifted_before from suppressions
      where organisation_id = $1 and erasure_id = any ($2::uuid[]) and lifted_before is not null group by erasure_id`,
    values: [organisationId, erasureIds],
  });
  // All ids of the erasure are lifted, because the repeated sweep may have added some that the ledger did not contain.
  for (const { erasure_id, lifted_before } of lifted)
    await client.query({
      name: 'lift suppressions again',
      text: `
        update suppressions set lifted_at = $3
        where organisation_id = $1 and lifted_at is null and erasure_id = $2 and exists (
          select from erasures where organisation_id = $1 and erasure_id = $2
            and swept_at is not null and coalesce(lake_state, 'done') = 'done')`,
      values: [organisationId, erasure_id, lifted_before],
    });
}
