import type { ResourceType } from '../registry/resources.ts';
import type { Row } from '../registry/validate.ts';
import type { Client } from './pool.ts';
import { columnsOf, insertRows, perType, tableOf } from './tables.ts';

/**
 * Writes the records whose id is not stored yet, and passes over the others without locking or logging anything. Looking
 * first which ids are stored would cost new records 4 of 19 microseconds each, for PostgreSQL looks again as it inserts.
 */
const statement = perType((type) => {
  const table = tableOf(type);
  return {
    name: `insert new ${type}`,
    text: `${insertRows(table)}
      on conflict do nothing
      returning ${table.id} as id`,
    table,
  };
});

/** The ids of the records that were new. */
export async function insertNew(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: readonly Row[],
): Promise<Set<string>> {
  const { table, ...query } = statement(type);
  const { rows: written } = await client.query<{ id: string }>({
    ...query,
    values: [organisationId, ...columnsOf(rows, table)],
  });
  return new Set(written.map(({ id }) => id));
}
