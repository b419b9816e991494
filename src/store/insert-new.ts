import type { ResourceType } from '../registry/resources.ts';
import type { EncodedRows } from './encoded-rows.ts';
import type { Client } from './pool.ts';
import { insertRows, perType, tableOf } from './tables.ts';

/**
 * Writes the records whose id is not stored yet, and passes over the others without locking or logging anything. Looking
 * first which ids are stored would cost new records 4 of 19 microseconds each, for PostgreSQL looks again as it inserts.
 */
const insert = perType((type) => ({
  name: `insert new ${type}`,
  text: `${insertRows(tableOf(type))}
      on conflict do nothing`,
}));

/** Which records are stored by another transaction than this one: those that the statement above passed over. */
const passedOver = perType((type) => {
  const { name, id } = tableOf(type);
  return {
    name: `passed over ${type}`,
    text: `
      select i.place::int - 1 as place
      from organisations o cross join unnest($2::uuid[]) with ordinality as i(id, place)
      cross join lateral (
        select t.xmin from ${name} t where t.organisation_id = $1 and t.${id} = i.id offset 0) t
      where o.organisation_id = $1 and t.xmin <> pg_current_xact_id()::xid
      order by i.place`,
  };
});

/** Writes what is new; returns the places of the rows that were stored already. */
export async function insertNew(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { count, arrays }: EncodedRows,
): Promise<number[]> {
  const { rowCount } = await client.query({
    ...insert(type),
    values: [organisationId, ...arrays, new Date()],
  });
  if (rowCount === count) return [];
  const { rows } = await client.query<{ place: number }>({
    ...passedOver(type),
    values: [organisationId, arrays[0]],
  });
  if (rows.length + (rowCount ?? 0) !== count) throw new Error('a row was neither written nor stored before');
  return rows.map(({ place }) => place);
}
