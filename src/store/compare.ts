import type { ResourceType } from '../registry/resources.ts';
import type { EncodedRows } from './encoded-rows.ts';
import type { Client } from './pool.ts';
import { perType, sentRows, tableOf } from './tables.ts';

/**
 * Looks for the records that say something new: those that are not stored, and those that differ from what is. An
 * unchanged row that reached `on conflict` would be locked and logged even though nothing is set: for 50,000 of them
 * 142 ms and 5.7 MB of WAL, against 16 ms and none when they are found here. `offset 0` is explained
 * at `exists` in tables.ts.
 */
const statement = perType((type) => {
  const { name, id, columns, types } = tableOf(type);
  const stored = columns.map((column) => `t.${column}`).join(', ');
  const incoming = columns.map((column) => `i.${column}`).join(', ');
  return {
    name: `compare ${type}`,
    text: `
      select string_agg(place, ',') filter (where fate = 'absent') as absent,
        string_agg(place, ',') filter (where fate = 'changed') as changed,
        string_agg(place, ',') filter (where fate = 'stale') as stale
      from (
        select (i."#" - 1)::text as place,
          case when t.${id} is null then 'absent' when i.updated < t.updated then 'stale' else 'changed' end as fate
        from ${sentRows(columns, types, ', generate_subscripts($2::uuid[], 1) as "#"')}
        left join lateral (
          select * from ${name} t where t.organisation_id = $1 and t.${id} = i.${id} offset 0) t on true
        where i.updated < t.updated or (${stored}) is distinct from (${incoming})) as found`,
  };
});

/** Places of the rows, ascending; those in none of the lists are unchanged. */
export interface Compared {
  readonly absent: readonly number[];
  readonly changed: readonly number[];
  /** Older than what is stored. */
  readonly stale: readonly number[];
}

export async function compare(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { arrays }: EncodedRows,
): Promise<Compared> {
  const { rows } = await client.query<Record<keyof Compared, string | null>>({
    ...statement(type),
    values: [organisationId, ...arrays],
  });
  const found = rows[0];
  return {
    absent: placesOf(found?.absent),
    changed: placesOf(found?.changed),
    stale: placesOf(found?.stale),
  };
}

/** One line of text: a row for each of them would take the driver 1 to 2 microseconds. */
function placesOf(list: string | null | undefined): number[] {
  return list
    ? list
        .split(',')
        .map(Number)
        .sort((a, b) => a - b)
    : [];
}
