import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { type LakeColumn, lakeSchema } from '../../src/lake/table/lake-schema.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { tableOf } from '../../src/records/tables.ts';
import { idFieldOf, type ResourceType } from '../../src/registry/resources.ts';

/** A record's values as strings, by column. */
type RowText = Readonly<Record<string, string | null>>;

function columnsOf(type: ResourceType): readonly LakeColumn[] {
  return lakeSchema(type).columns.filter(({ name }) => !name.startsWith('_'));
}

/** Returns rows as strings, so that rows from different readers can be compared. */
export function textsOf(type: ResourceType, rows: readonly RowText[]): string[] {
  return rows
    .map((row) =>
      JSON.stringify(
        columnsOf(type).map(({ name, type: of }) => {
          const value = row[name] ?? null;
          return of === 'double' && value !== null ? Number(value) : value;
        }),
      ),
    )
    .sort();
}

/** Returns the records of a type that are stored in PostgreSQL and not deleted. */
export async function storedRecords(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  type: ResourceType,
): Promise<string[]> {
  const selected = columnsOf(type).map(({ name, type: of }) => {
    if (of === 'timestamp') return `(extract(epoch from "${name}") * 1000000)::bigint::text as "${name}"`;
    if (of === 'decimal(38,9)') return `"${name}"::numeric(38,9)::text as "${name}"`;
    return `"${name}"::text as "${name}"`;
  });
  const { rows } = await pool.query<RowText>(
    `select ${selected.join(', ')} from ${tableOf(type).name} where organisation_id = $1 and not is_deleted`,
    [organisationId],
  );
  return textsOf(type, rows);
}

/** Returns a table's files at one version, according to its log. */
export function filesOfVersion(folder: string, version: number): string[] {
  const log = join(folder, '_delta_log');
  const files = new Set<string>();
  for (const name of readdirSync(log)
    .filter((one) => one.endsWith('.json'))
    .toSorted()) {
    if (Number.parseInt(name, 10) > version) break;
    for (const line of readFileSync(join(log, name), 'utf8').trim().split('\n')) {
      const { add, remove } = JSON.parse(line);
      if (remove) files.delete(join(folder, remove.path));
      if (add) files.add(join(folder, add.path));
    }
  }
  return [...files];
}

/** A shared DuckDB instance, because starting DuckDB takes longer than a query. */
let database: Promise<DuckDBInstance> | undefined;

/** Returns a table's current records at one version, found with the query from docs/lake.md. */
export async function currentRecords(folder: string, type: ResourceType, version: number): Promise<string[]> {
  const files = filesOfVersion(folder, version);
  if (files.length === 0) return [];
  const selected = columnsOf(type).map(({ name, type: of }) =>
    of === 'timestamp' ? `epoch_us("${name}")::varchar as "${name}"` : `"${name}"::varchar as "${name}"`,
  );
  database ??= DuckDBInstance.create();
  const connection = await (await database).connect();
  const reader = await connection.runAndReadAll(
    `select ${selected.join(', ')} from (
       select * from read_parquet([${files.map((file) => `'${file}'`).join(', ')}], union_by_name = true)
       qualify row_number() over (partition by ${idFieldOf(type)} order by _change desc) = 1 and not _deleted)`,
  );
  const rows = reader.getRowObjectsJson() as unknown as RowText[];
  connection.closeSync();
  return textsOf(type, rows);
}
