import type { ResourceType } from '../registry/resources.ts';
import type { EncodedRows } from './encoded-rows.ts';
import type { Client } from './pool.ts';
import { insertRows, perType, tableOf } from './tables.ts';

/** Writes records whole, new ones and changed ones alike, but never an older version over a newer one. */
const statement = perType((type) => {
  const table = tableOf(type);
  const { name, id, columns } = table;
  const assignments = columns.slice(1).map((column) => `${column} = excluded.${column}`);
  return {
    name: `upsert ${type}`,
    text: `${insertRows(table)}
      on conflict (organisation_id, ${id}) do update set ${assignments.join(', ')}
      where (excluded.updated < ${name}.updated) is not true
      returning ${id} as id, (xmax = 0) as created`,
  };
});

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
    values: [organisationId, ...arrays],
  });
  return new Map(written.map(({ id, created }) => [id, created ? 'created' : 'updated']));
}
