import { type EncodedRows, idAt } from '../../postgres/binary/encoded-rows.ts';
import type { Client } from '../../postgres/pool.ts';
import { insertRows, tableOf } from '../../records/tables.ts';
import { perType, type ResourceType } from '../../registry/resources.ts';

/** Skips stored records without locking or logging them. */
const insert = perType((type) => ({
  name: `insert new ${type}`,
  text: `${insertRows(tableOf(type))}
      on conflict do nothing returning ${tableOf(type).id} as id`,
}));

export async function insertNew(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: EncodedRows,
): Promise<number[]> {
  const { rows: written } = await client.query<{ id: string }>({
    ...insert(type),
    values: [organisationId, ...rows.arrays, new Date()],
  });
  if (written.length === rows.count) return [];
  const ids = new Set(written.map(({ id }) => id));
  return Array.from({ length: rows.count }, (_, row) => row).filter((row) => !ids.has(idAt(rows, row)));
}
