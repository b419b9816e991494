import { rm, writeFile } from 'node:fs/promises';
import { linesIn } from './lines-in.ts';
import { literal, type ParquetWriter } from './parquet-writer.ts';
import type { Action } from './table-state.ts';

/** Each row has a value in exactly one of the columns. */
const columns = {
  protocol: 'struct(minReaderVersion integer, minWriterVersion integer)',
  metaData: `struct(id varchar, name varchar, description varchar,
    format struct(provider varchar, options map(varchar, varchar)), schemaString varchar,
    partitionColumns varchar[], configuration map(varchar, varchar), createdTime bigint)`,
  txn: 'struct(appId varchar, version bigint, lastUpdated bigint)',
  add: `struct(path varchar, partitionValues map(varchar, varchar), size bigint, modificationTime bigint,
    dataChange boolean, stats varchar, tags map(varchar, varchar))`,
  remove: 'struct(path varchar, deletionTimestamp bigint, dataChange boolean)',
} satisfies Partial<Record<keyof Action, string>>;

const names = Object.keys(columns) as (keyof typeof columns)[];

/**
 * For each kind of action, a field that is always set. If a row has no action of that kind, some programs write null for
 * the whole struct, and others write a struct in which every field is null.
 */
const always = { protocol: 'minReaderVersion', metaData: 'id', txn: 'appId', add: 'path', remove: 'path' };

export async function writeCheckpoint(parquet: ParquetWriter, actions: readonly Action[]): Promise<string> {
  const lines = parquet.newFile('ndjson');
  const localFile = parquet.newFile('parquet');
  await writeFile(lines, actions.map((action) => `${JSON.stringify(action)}\n`).join(''), { mode: 0o600 });
  try {
    const types = names.map((name) => `${literal(name)}: ${literal(columns[name])}`).join(', ');
    const rows = `select * from read_ndjson(${literal(lines)}, columns = {${types}})`;
    await parquet.run([`copy (${rows}) to ${literal(localFile)} (format parquet, compression zstd)`]);
  } finally {
    await rm(lines);
  }
  return localFile;
}

/** Reads the actions one at a time through a file, because all of them may not fit into the memory of the DuckDB process. */
export async function* readCheckpoint(parquet: ParquetWriter, localFile: string): AsyncGenerator<Action> {
  const lines = parquet.newFile('ndjson');
  const columns = names.map(
    (name) => `case when "${name}"."${always[name]}" is not null then "${name}" end as "${name}"`,
  );
  const rows = `select ${columns.join(', ')} from read_parquet(${literal(localFile)})`;
  try {
    await parquet.run([`copy (${rows}) to ${literal(lines)} (format json)`]);
    for await (const some of linesIn(lines)) for (const line of some) yield JSON.parse(line);
  } finally {
    await rm(lines, { force: true });
  }
}
