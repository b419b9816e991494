import type { ResourceType } from '../registry/resources.ts';
import type { EncodedRows } from './encoded-rows.ts';
import type { Client } from './pool.ts';
import { insertRows, perType, tableOf } from './tables.ts';

/** Writes records whole, new ones and changed ones alike, but never an older version over a newer one. */
function upsertText(type: ResourceType): string {
  const table = tableOf(type);
  const { name, id, columns } = table;
  const assignments = columns.slice(1).map((column) => `${column} = excluded.${column}`);
  return `${insertRows(table)}
      on conflict (organisation_id, ${id}) do update set ${assignments.join(', ')}, stored_at = excluded.stored_at
      where (excluded.updated < ${name}.updated) is not true`;
}

const update = perType((type) => ({ name: `update ${type}`, text: upsertText(type) }));
const statement = perType((type) => ({
  name: `upsert ${type}`,
  text: `${upsertText(type)}
      returning ${tableOf(type).id} as id, (xmax = 0) as created`,
}));

/** Writes records that are stored already. Returns whether each was written: one may have met a newer version. */
export async function updateStored(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { count, arrays }: EncodedRows,
): Promise<boolean> {
  const { rowCount } = await client.query({
    ...update(type),
    values: [organisationId, ...arrays, new Date()],
  });
  return rowCount === count;
}

/**
 * What became of each record, by its id. One that is missing from what PostgreSQL returns met a newer version, stored
 * since we looked: that is the only thing the statement passes over.
 */
export async function upsert(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { arrays }: EncodedRows,
): Promise<Map<string, 'created' | 'updated'>> {
  const { rows: written } = await client.query<{ id: string; created: boolean }>({
    ...statement(type),
    values: [organisationId, ...arrays, new Date()],
  });
  return new Map(written.map(({ id, created }) => [id, created ? 'created' : 'updated']));
}
