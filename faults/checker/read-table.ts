import type pg from 'pg';
import type { Values } from '../../test/fault/erasure-mixture/oracle.ts';
import { type ComparedTable, textExpression } from './stored-text.ts';

export interface StoredRow {
  /** The column by which the oracle recognises the record. */
  readonly id: string;
  /** The record's own id. */
  readonly key: string;
  readonly values: Values;
}

/** Reads an organisation's rows directly from the database: all of them, or those with these ids. */
export async function readTable(
  client: pg.Client,
  organisationId: string,
  { name, id, fields }: ComparedTable,
  ids?: readonly string[],
): Promise<StoredRow[]> {
  const key = name === 'interactions' ? 'interaction_id' : id;
  const columns = Object.entries(fields).map(([field, column]) => textExpression(field, column));
  const { rows } = await client.query<{ id: string; key: string; texts: (string | null)[] }>(
    `select ${id}::text as id, ${key}::text as key, array[${columns.join(', ')}] as texts
     from ${name} where organisation_id = $1 ${ids ? `and ${id} = any($2)` : ''}`,
    ids ? [organisationId, ids] : [organisationId],
  );
  const names = Object.keys(fields);
  return rows.map(({ id: found, key: own, texts }) => ({
    id: found,
    key: own,
    values: Object.fromEntries(names.map((field, at) => [field, texts[at] ?? null])),
  }));
}
