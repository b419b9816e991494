import { type Done, noRejections } from '../../bookkeeping/store.ts';
import type { PersonalTable } from '../../people/personal-tables.ts';
import { binaryArray } from '../../postgres/binary/array-writer.ts';
import type { Client } from '../../postgres/pool.ts';
import { beginAgainUnless, queryRow } from '../../postgres/transactions.ts';
import { functionName } from '../erasure-functions.ts';
import type { FoundRow, StepResult, Sweep } from './sweep-step.ts';

/** Deletes the rows or clears their personal fields, and adds the changes to the change log. */
export async function eraseRows(
  client: Client,
  { organisationId, modes }: Sweep,
  table: PersonalTable,
  found: readonly FoundRow[],
): Promise<Pick<StepResult, 'done' | 'rows'>> {
  const byId = Map.groupBy(found, ({ id }) => id);
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

/**
 * Returns the bookkeeping entry for the changed rows. A deleted row also appears in the change feed and is subtracted from
 * the counts.
 */
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
