import { type Done, noRejections } from '../../bookkeeping/store.ts';
import { limits } from '../../limits.ts';
import { binaryArray } from '../../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import { beginAgainUnless, queryRow } from '../../postgres/transactions.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { functionName, type PersonalTable } from '../erasure-functions.ts';
import type { FoundRow, Last, StepResult, Sweep } from './sweep-step.ts';

/** A row with all ids of people in it. */
export interface FoundPeople extends FoundRow {
  readonly people: readonly (string | null)[];
}

/**
 * Finds the rows of people among the next rows of a table. Reads a bounded number in the order of their ids, along the primary
 * key: no other index could serve, for each would slow uploads down.
 */
export async function nextRows(
  pool: Pool,
  { organisationId }: Sweep,
  table: PersonalTable,
  after: string | null,
): Promise<{ readonly found: readonly FoundPeople[]; readonly after: string | null }> {
  const columns = table.identifying.map((column) => `t.${column}::text`).join(', ');
  const scanned = `
    select ${table.id} as id, array[${columns}] as people from ${table.name} t
    where organisation_id = $1 and ${table.id} > $2 order by ${table.id} limit ${limits.erasureRowsPerScan}`;
  const { rows } = await pool.query<FoundPeople | Last>(
    // Unnested, the ids can be joined by a hash table; compared with an array, each with each.
    `with s as materialized (${scanned})
     select distinct s.id, s.people, e.erasure_id from s cross join unnest(s.people) as p(id)
     join erasure_ids e on e.organisation_id = $1 and e.id = p.id
     union all
     (select s.id, null, null from s order by s.id offset ${limits.erasureRowsPerScan - 1})`,
    [organisationId, after ?? firstUuid],
  );
  return {
    found: rows.filter((row): row is FoundPeople => row.erasure_id !== null),
    after: rows.find(({ erasure_id }) => erasure_id === null)?.id ?? null,
  };
}

/** Deletes rows that were found, or empties what is personal in them; enters both in the change log. */
export async function eraseRows(
  client: Client,
  { organisationId, modes }: Sweep,
  table: PersonalTable,
  found: readonly FoundRow[],
): Promise<Pick<StepResult, 'done' | 'rows'>> {
  const byId = Map.groupBy(
    found.filter(({ erasure_id }) => modes.has(erasure_id)),
    ({ id }) => id,
  );
  const isDeleted = (id: string) =>
    !table.canStay || byId.get(id)?.some(({ erasure_id }) => modes.get(erasure_id) === 'delete') === true;
  const parts = [
    { ids: [...byId.keys()].filter(isDeleted), isDeletion: true },
    { ids: [...byId.keys()].filter((id) => !isDeleted(id)), isDeletion: false },
  ];
  const done: Done[] = [];
  for (const { ids, isDeletion } of parts) {
    if (ids.length === 0) continue;
    const sorted = ids.toSorted();
    const { changed } = await queryRow<{ changed: string }>(client, {
      text: `select ${functionName(table)}($1, $2, $3, $4, $5, $6) as changed`,
      values: [organisationId, sorted, sorted[0], sorted.at(-1), isDeletion, new Date()],
    });
    beginAgainUnless(Number(changed) === ids.length, 'rows of a person were changed meanwhile');
    done.push(doneOf(organisationId, table.type, sorted, isDeletion));
  }
  return { done, rows: [...byId.values()].map(([first]) => (first as FoundRow).erasure_id) };
}

/** A removed row is an entry in the feed too, and one less in the counts. */
function doneOf(organisationId: string, type: string, ids: readonly string[], isDeletion: boolean): Done {
  const changed = { count: ids.length, ids: binaryArray('uuid', ids) };
  const stored = {
    type,
    changed,
    records: isDeletion ? -ids.length : 0,
    newestUpdated: null,
    isReceived: false,
  };
  return { organisationId, stored, rejected: noRejections, receipt: null };
}
