import type { EncodedRows } from '../../postgres/binary/encoded-rows.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { insertRows, tableOf } from '../../records/tables.ts';
import { perType } from '../../registry/resources.ts';
import type { Target } from './compare.ts';

/** Not a plain `update`: a cluster plans only `insert … select` as one task on the node that stores the rows. */
const replace = perType((type) => {
  const table = tableOf(type);
  const assignments = table.columns.slice(1).map((column) => `${column} = excluded.${column}`);
  return {
    name: `replace ${type}`,
    text: `${insertRows(table)}
      on conflict (organisation_id, ${table.id}) do update set ${assignments.join(', ')}, stored_at = excluded.stored_at`,
  };
});

/** Never overwrites a newer version, which may have arrived since the rows were compared. */
const update = perType((type) => ({
  name: `update ${type}`,
  text: `${replace(type).text}
      where (excluded.updated < ${tableOf(type).name}.updated) is not true`,
}));

const lock = perType((type) => {
  const { name, id } = tableOf(type);
  return {
    name: `lock ${type}`,
    text: `select from ${name} where organisation_id = $1 and ${id} = any($2::uuid[]) order by ${id} for no key update`,
  };
});

export async function updateStored(
  { client, organisationId, type }: Target,
  { count, arrays }: EncodedRows,
): Promise<boolean> {
  const values = [organisationId, ...arrays, new Date()];
  const { rowCount } = await client.query({ ...update(type), values });
  return rowCount === count;
}

/** Locks the rows in id order until the transaction ends. */
export async function lockStored(
  { client, organisationId, type }: Target,
  { count, arrays }: EncodedRows,
): Promise<void> {
  await queryRows(client, { ...lock(type), values: [organisationId, arrays[0]] }, count);
}

/** The records must be locked. */
export async function replaceLocked(
  { client, organisationId, type }: Target,
  { count, arrays }: EncodedRows,
): Promise<void> {
  const values = [organisationId, ...arrays, new Date()];
  await queryRows(client, { ...replace(type), values }, count);
}
