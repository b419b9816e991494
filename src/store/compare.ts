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
      select i."#" - 1 as place, coalesce(i.updated < t.updated, false) as stale
      from ${sentRows(columns, types, ', generate_subscripts($2::uuid[], 1) as "#"')}
      left join lateral (
        select * from ${name} t where t.organisation_id = $1 and t.${id} = i.${id} offset 0) t on true
      where i.updated < t.updated or (${stored}) is distinct from (${incoming})
      order by i."#"`,
  };
});

export interface Compared {
  /** Places of the rows to write. */
  readonly differing: readonly number[];
  /** Places of the rows that are older than what is stored. Those in neither list are unchanged. */
  readonly stale: readonly number[];
}

export async function compare(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { arrays }: EncodedRows,
): Promise<Compared> {
  const { rows } = await client.query<{ place: number; stale: boolean }>({
    ...statement(type),
    values: [organisationId, ...arrays],
  });
  return {
    differing: rows.filter(({ stale }) => !stale).map(({ place }) => place),
    stale: rows.filter(({ stale }) => stale).map(({ place }) => place),
  };
}
