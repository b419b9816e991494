import type { Client } from '../postgres/pool.ts';

/**
 * Repeats what had been lifted before the database was restored. Skips erasures whose people may still be in a table or
 * in the lake, where they are found by the hashes of their ids.
 */
export async function liftAgain(
  client: Pick<Client, 'query'>,
  organisationId: string,
  erasureIds: readonly string[],
): Promise<void> {
  await client.query({
    name: 'lift suppressions again',
    // The repeated sweep may have added ids, which the ledger did not contain.
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
