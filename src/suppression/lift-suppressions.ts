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

/** Repeats what had been lifted before a restore, unless the hashes are still needed to find these people. */
export async function liftAgain(
  client: Pick<Client, 'query'>,
  organisationId: string,
  erasureIds: readonly string[],
): Promise<void> {
  await client.query({
    name: 'lift suppressions again',
    // All ids of the erasure are lifted, because the repeated sweep may have added some that the ledger did not contain.
    text: `
      update suppressions s set lifted_at = l.lifted_before
      from (
        select b.erasure_id, max(b.lifted_before) as lifted_before
        from suppressions b join erasures e on e.organisation_id = b.organisation_id and e.erasure_id = b.erasure_id
        where b.organisation_id = $1 and e.organisation_id = $1 and b.erasure_id = any ($2::uuid[])
          and b.lifted_before is not null and e.swept_at is not null and coalesce(e.lake_state, 'done') = 'done'
        group by b.erasure_id) as l
      where s.organisation_id = $1 and s.erasure_id = l.erasure_id and s.lifted_at is null`,
    values: [organisationId, erasureIds],
  });
}
