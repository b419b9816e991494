import type { ResourceType } from '../registry/resources.ts';
import type { Row } from '../registry/validate.ts';
import type { Client } from './pool.ts';
import { columnsOf, perType, tableOf } from './tables.ts';

/**
 * Writes records whole, new ones and changed ones alike. `organisations` stands in the `from` so that Citus plans the
 * statement as one task on the node that owns the organisation; without it, or wrapped in a `with`, the rows travel to
 * the coordinator. Ordering by id is what keeps concurrent uploads of the same records from deadlocking. No id may
 * come twice.
 */
const statement = perType((type) => {
  const table = tableOf(type);
  const { name, id, columns, rowsAsParameters } = table;
  const assignments = columns.slice(1).map((column) => `${column} = excluded.${column}`);
  return {
    name: `upsert ${type}`,
    text: `
      insert into ${name} (organisation_id, ${columns.join(', ')})
      select o.organisation_id, ${columns.map((column) => `i.${column}`).join(', ')}
      from organisations o cross join ${rowsAsParameters}
      where o.organisation_id = $1
      order by i.${id}
      on conflict (organisation_id, ${id}) do update set ${assignments.join(', ')}
      where (excluded.updated < ${name}.updated) is not true
      returning ${id} as id, (xmax = 0) as created`,
    table,
  };
});

/**
 * What became of each record. One that is missing from what PostgreSQL returns met a newer version, stored since we
 * looked: that is the only thing the statement passes over.
 */
export async function upsert(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: readonly Row[],
): Promise<Map<string, 'created' | 'updated'>> {
  const { table, ...query } = statement(type);
  const { rows: written } = await client.query<{ id: string; created: boolean }>({
    ...query,
    values: [organisationId, ...columnsOf(rows, table)],
  });
  return new Map(written.map(({ id, created }) => [id, created ? 'created' : 'updated']));
}
