import { type Done, noRejections } from '../../bookkeeping/store.ts';
import type { Place } from '../../jobs/job.ts';
import {
  type InteractionsPlace,
  nextInteractions,
  nextRows,
  type RowOfPeople,
} from '../../people/find-rows.ts';
import { type Found, type Search, type Wanted, wantedAmong } from '../../people/people.ts';
import { type PersonalTable, personalTables, tableWith } from '../../people/personal-tables.ts';
import { binaryArray } from '../../postgres/binary/array-writer.ts';
import type { Client } from '../../postgres/pool.ts';
import { beginAgainUnless, queryRow, queryRows } from '../../postgres/transactions.ts';
import { peopleOf } from '../../registry/personal.ts';
import { personalFields } from '../../registry/upload-types.ts';
import { type ErasureAction, functionName } from '../erasure-functions.ts';
import type { Swept } from './sweep-step.ts';

const tables = personalTables.filter(({ type }) => type !== 'customers');

export async function eraseRows(client: Client, { organisationId, position }: Place): Promise<Swept> {
  const at = (position ?? { table: 0, after: null }) as { table: number; after: unknown };
  const table = tables[at.table] as PersonalTable;
  const search: Search = { organisationId, for: 'erasures' };
  const { found, next }: Found<RowOfPeople, unknown> =
    table.type === 'interactions'
      ? await nextInteractions(client, search, at.after as InteractionsPlace | null, true)
      : await nextRows(client, search, table, at.after as string | null);
  const done = await erase(client, search, table, found);
  const isLast = next === null && at.table === tables.length - 1;
  const position_ = next === null ? { table: at.table + 1, after: null } : { table: at.table, after: next };
  return { next: isLast ? { step: 'rejections' } : { step: 'rows', position: position_ }, done };
}

export async function eraseCustomers(client: Client, { organisationId, position }: Place): Promise<Swept> {
  const search: Search = { organisationId, for: 'erasures' };
  const customers = tableWith('customers');
  const { found, next } = await nextRows(client, search, customers, position as string | null);
  const done = await erase(client, search, customers, found);
  return { next: next === null ? { step: 'statistics' } : { step: 'customers', position: next }, done };
}

interface Decided {
  readonly id: string;
  readonly action: ErasureAction;
  readonly erasureId: string;
}

function decide(
  { type, canStay }: PersonalTable,
  { id, people }: RowOfPeople,
  wanted: ReadonlyMap<string, readonly Wanted[]>,
): Decided | undefined {
  const own = peopleOf(personalFields(type), (field) => people[field]).flatMap(
    (one) => wanted.get(one) ?? [],
  );
  // If a person belongs to two erasures, deletion takes precedence over anonymisation.
  const first = own.find(({ mode }) => mode === 'delete') ?? own[0];
  if (first) {
    const action = first.mode === 'delete' || !canStay ? 'delete' : 'anonymise';
    return { id, action, erasureId: first.request };
  }
  const [mentioned] = Object.values(people).flatMap((one) => wanted.get(one ?? '') ?? []);
  return mentioned && { id, action: 'unlink', erasureId: mentioned.request };
}

async function erase(
  client: Client,
  search: Search,
  table: PersonalTable,
  found: readonly RowOfPeople[],
): Promise<Done[]> {
  const { organisationId } = search;
  const ids = found.flatMap(({ people }) => Object.values(people).filter((id) => id !== null));
  const wanted = await wantedAmong(client, search, ids);
  const decided = found.flatMap((row) => decide(table, row, wanted) ?? []);
  const done: Done[] = [];
  for (const [action, rows] of Map.groupBy(decided, (row) => row.action)) {
    const sorted = rows.map(({ id }) => id).toSorted();
    const { changed } = await queryRow<{ changed: string }>(client, {
      text: `select ${functionName(table)}($1, $2, $3, $4, $5, $6) as changed`,
      values: [organisationId, sorted, sorted[0], sorted.at(-1), action, new Date()],
    });
    beginAgainUnless(Number(changed) === sorted.length, 'rows of a person were changed meanwhile');
    done.push(rowsDone(organisationId, table.type, sorted, action === 'delete' ? -sorted.length : 0));
    if (table.type === 'interactions') await noteRange(client, organisationId, sorted);
    const name = action === 'unlink' ? `${table.name}_unlinked` : table.name;
    await countErased(
      client,
      organisationId,
      name,
      rows.map(({ erasureId }) => erasureId),
    );
  }
  return done;
}

/** `added` is negative for deleted rows. */
export function rowsDone(organisationId: string, type: string, ids: readonly string[], added: number): Done {
  const changed = { count: ids.length, ids: binaryArray('uuid', ids) };
  const stored = { type, changed, records: added, newestUpdated: null, isReceived: false };
  return { organisationId, stored, rejected: noRejections, receipt: null };
}

async function noteRange(client: Client, organisationId: string, sorted: readonly string[]): Promise<void> {
  await client.query(
    `update erasures set first_changed = least(first_changed, $2::uuid), last_changed = greatest(last_changed, $3::uuid)
     where organisation_id = $1 and state = 'sweeping'`,
    [organisationId, sorted[0], sorted.at(-1)],
  );
}

/** `erasureIds` has an entry for each row. */
export async function countErased(
  client: Client,
  organisationId: string,
  name: string,
  erasureIds: readonly string[],
): Promise<void> {
  const counts = Map.groupBy(erasureIds, (one) => one);
  if (counts.size === 0) return;
  const text = `
    update erasures r set rows = jsonb_set(rows, array[$2::text], (coalesce((rows->>$2)::bigint, 0) + c.count)::text::jsonb)
    from unnest($3::uuid[], $4::bigint[]) as c(erasure_id, count)
    where r.organisation_id = $1 and r.erasure_id = c.erasure_id`;
  const values = [organisationId, name, [...counts.keys()], [...counts.values()].map(({ length }) => length)];
  await queryRows(client, { text, values }, counts.size);
}
