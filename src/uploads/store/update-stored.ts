import type { EncodedRows } from '../../postgres/binary/encoded-rows.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { insertRows, sentRows, type Table, tableOf } from '../../records/tables.ts';
import type { Mode } from '../../registry/fields.ts';
import { perType, type ResourceType } from '../../registry/resources.ts';
import type { Target } from './compare.ts';
import { isSent, withSent } from './sent-fields.ts';

/** Not a plain `update`: a cluster plans only `insert … select` as one task on the node that stores the rows. */
function written(mode: Mode, type: ResourceType): string {
  const table = tableOf(type);
  const assignments = table.columns.slice(1).map((column) => `${column} = excluded.${column}`);
  return `${mode === 'merge' ? insertMerged(table) : insertRows(table)}
      on conflict (organisation_id, ${table.id}) do update set ${assignments.join(', ')}, stored_at = excluded.stored_at`;
}

/** The stored records must be locked, because their values are written again where none was sent. */
function insertMerged({ name, id, columns, types }: Table): string {
  const sent = withSent(columns, types);
  const values = columns.map((column, at) => `case when ${isSent(at)} then i.${column} else t.${column} end`);
  return `
      insert into ${name} (organisation_id, ${columns.join(', ')}, stored_at)
      select i.organisation_id, ${values.join(', ')}, $${columns.length + 3}::timestamptz
      from ${sentRows(sent.columns, sent.types)}
      cross join lateral (
        select * from ${name} t where t.organisation_id = $1 and t.${id} = i.${id} offset 0) t
      order by i.${id}`;
}

const write = perMode((mode, type) => ({ name: `${mode} ${type}`, text: written(mode, type) }));

/** Never overwrites a newer version, which may have arrived since the rows were compared. */
const update = perMode((mode, type) => ({
  name: `${mode} ${type} unless newer`,
  text: `${written(mode, type)}
      where (excluded.updated < ${tableOf(type).name}.updated) is not true`,
}));

function perMode<T>(make: (mode: Mode, type: ResourceType) => T): (mode: Mode, type: ResourceType) => T {
  const made = {
    replace: perType((type: ResourceType) => make('replace', type)),
    merge: perType((type: ResourceType) => make('merge', type)),
  };
  return (mode, type) => made[mode](type);
}

const lock = perType((type) => {
  const { name, id } = tableOf(type);
  return {
    name: `lock ${type}`,
    text: `
      select ${id} as id from ${name} where organisation_id = $1 and ${id} = any($2::uuid[])
      order by ${id} for no key update`,
  };
});

/** When merging, the records must be locked. */
export async function updateStored(
  { client, organisationId, type, mode }: Target,
  { count, arrays }: EncodedRows,
): Promise<boolean> {
  const values = [organisationId, ...arrays, new Date()];
  const { rowCount } = await client.query({ ...update(mode, type), values });
  return rowCount === count;
}

/** Locks the records that exist, in id order, until the transaction ends. Returns their ids. */
export async function lockStored(
  { client, organisationId, type }: Target,
  { arrays }: EncodedRows,
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ id: string }>({
    ...lock(type),
    values: [organisationId, arrays[0]],
  });
  return new Set(rows.map(({ id }) => id));
}

/** The records must be locked. */
export async function writeLocked(
  { client, organisationId, type, mode }: Target,
  { count, arrays }: EncodedRows,
): Promise<void> {
  const values = [organisationId, ...arrays, new Date()];
  await queryRows(client, { ...write(mode, type), values }, count);
}
