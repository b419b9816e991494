// erasure/sweep/: removes erased people's remaining data from every table, step by step.

import { limits } from '../../limits.ts';
import { type PersonalTable, personalTables } from '../../people/personal-tables.ts';
import { type Pool, withClient } from '../../postgres/pool.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';

/**
 * Hides erased people whose data came back when a backup was restored. Only the hashes of their ids are known, so this
 * compares all customers with the hashes before any key works again. Customers that match are hidden as if their erasure
 * had just been requested. The sweep finds the remaining people.
 */
export async function hideRestoredCustomers(
  pool: Pool,
  suppressions: Suppressions,
  stopping?: AbortSignal,
): Promise<void> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select distinct organisation_id from erasures where step = 'identify customers'`,
  );
  const customers = personalTables.filter(({ type }) => type === 'customers');
  for (const { organisation_id } of rows) {
    for (const table of customers)
      for (let after: string | null = firstUuid; after !== null; ) {
        if (stopping?.aborted) return;
        after = await identifyNext(pool, organisation_id, table, after, suppressions);
      }
    await pool.query(
      `update erasures set step = 'identify' where organisation_id = $1 and step = 'identify customers'`,
      [organisation_id],
    );
  }
  if (rows.length > 0) await pool.query('select people_are_hidden()');
}

/**
 * Compares the people's ids in the next rows of a table with the hashes of erased people, and adds the matching ids to
 * their erasures. Returns the position to continue from, or null at the end of the table.
 */
export async function identifyNext(
  pool: Pool,
  organisationId: string,
  { name, id, identifying }: PersonalTable,
  after: string,
  suppressions: Suppressions,
): Promise<string | null> {
  const columns = identifying.map((column) => `${column}::text`).join(', ');
  const { rows } = await pool.query<{ id: string; people: (string | null)[] }>(
    `select ${id} as id, array[${columns}] as people from ${name}
     where organisation_id = $1 and ${id} > $2 order by ${id} limit ${limits.erasureRowsPerScan}`,
    [organisationId, after],
  );
  const people = new Set(rows.flatMap((row) => row.people).filter((one) => one !== null));
  const erased = await withClient(pool, (client) => suppressions.erasuresOf(client, organisationId, people));
  if (erased.size > 0)
    await pool.query(
      `insert into erasure_ids (organisation_id, erasure_id, id)
       select o.organisation_id, i.erasure_id, i.id
       from tenants o cross join unnest($2::uuid[], $3::text[]) as i(erasure_id, id)
       where o.organisation_id = $1 on conflict do nothing`,
      [organisationId, [...erased.values()], [...erased.keys()]],
    );
  return rows.length === limits.erasureRowsPerScan ? (rows.at(-1)?.id ?? null) : null;
}
