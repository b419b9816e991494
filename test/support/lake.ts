import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { onTestFinished } from 'vitest';
import { type LakeStore, openStore, type StoredFile } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { type LakeSchema, lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { type ParquetSettings, ParquetWriter } from '../../src/lake/table/parquet-writer.ts';
import { RowsOfPeople } from '../../src/lake/table/rows-of-people.ts';
import type { DataFile } from '../../src/lake/table/table-state.ts';

/** An interaction as it is written to the lake. */
export type LakeRow = Readonly<Record<string, string | null>> & {
  readonly interaction_id: string;
  readonly event_time: string;
  readonly created: string;
};

export const day = '2026-03-14';
export const dayMs = Date.parse(`${day}T00:00:00Z`);

/** Creates a folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'intake-lake-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function testWriter(memoryMb = 256, more: Partial<ParquetSettings> = {}): ParquetWriter {
  const parquet = new ParquetWriter({ folder: temporaryFolder(), memoryMb, threads: 2, ...more });
  onTestFinished(() => parquet.close());
  return parquet;
}

export interface TestLake {
  readonly root: string;
  readonly store: LakeStore;
  readonly parquet: ParquetWriter;
  open(schema?: LakeSchema): Promise<DeltaTable>;
}

/** Creates a lake in a temporary folder, with one table at `acme/interactions`. */
export function testLake(): TestLake {
  const root = temporaryFolder();
  const store = openStore(pathToFileURL(root).href);
  const parquet = testWriter();
  const open = (schema = lakeSchema('interactions')) =>
    DeltaTable.open(store, 'acme/interactions', schema, parquet);
  return { root, store, parquet, open };
}

/** Returns the store with some of its methods replaced. */
export function changed(store: LakeStore, changes: Partial<LakeStore>): LakeStore {
  const bound: LakeStore = {
    read: (path) => store.read(path),
    readRange: (path, from, to) => store.readRange(path, from, to),
    create: (path, bytes) => store.create(path, bytes),
    putFile: (path, localFile) => store.putFile(path, localFile),
    getFile: (path, localFile) => store.getFile(path, localFile),
    list: (below) => store.list(below),
    folders: () => store.folders(),
    remove: (path) => store.remove(path),
    probe: () => store.probe(),
  };
  return { ...bound, ...changes };
}

const hex = (count: number) => randomBytes(count).toString('hex').slice(0, count);

/** Returns interactions with unusual values. They are received one millisecond apart, starting at this time. */
export function newRows(count: number, fromMs = dayMs): LakeRow[] {
  return Array.from({ length: count }, (_, at) => {
    const ms = fromMs + at;
    const time = ms.toString(16).padStart(12, '0');
    return {
      interaction_id: `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`,
      interaction_type: 'PAGE_VIEW',
      user_id: at % 3 === 0 ? null : `visitor "${at}"\n\u{1f600}`,
      student_id: at % 2 === 0 ? null : randomUUID(),
      item_type: 'SHOP',
      item_id: randomUUID(),
      city: at % 5 === 0 ? '' : 'Zürich',
      country: 'CH',
      platform: 'WEB',
      source: null,
      recommendation_id: null,
      event_time:
        ['0001-01-01T00:00:00.000000Z', '9999-12-31T23:59:59.999999Z'][at] ?? '2026-03-13T23:59:59.000007Z',
      created: new Date(ms).toISOString(),
    };
  });
}

/** Writes rows to a file of JSON lines, and returns its path. */
export function linesOf(parquet: ParquetWriter, rows: readonly object[]): string {
  const file = parquet.newFile('ndjson');
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return file;
}

/** Commits one day's rows. */
export async function append(
  table: DeltaTable,
  parquet: ParquetWriter,
  rows: readonly LakeRow[],
  position?: number,
): Promise<'committed' | 'conflict'> {
  const of = rows[0]?.created.slice(0, 10) ?? day;
  const written = await parquet.write(linesOf(parquet, rows), table.schema, { day: of });
  if (!written) throw new Error('no rows were written');
  const txn = position === undefined ? {} : { txn: { appId: 'acme', version: position } };
  return table.commit({ add: [await table.put(written, of)], ...txn });
}

/** Rewrites a file without these people's rows. Rows with the given ids stay, but without their person. */
export async function eraseFrom(
  table: DeltaTable,
  parquet: ParquetWriter,
  file: DataFile,
  { people, staying = [] }: { people: readonly (string | null | undefined)[]; staying?: readonly string[] },
): Promise<'nothing' | 'committed' | 'conflict'> {
  const copy = await table.get(file);
  const rows = new RowsOfPeople(parquet, 'interactions', copy);
  try {
    const found = await rows.people(async (ids) => ids.filter((id) => people.includes(id)));
    if (found === undefined) return 'nothing';
    const stays = async (ids: readonly string[]) => ids.filter((id) => staying.includes(id));
    const written = await rows.rewrite(found, stays, file.partition);
    const add = written ? [await table.put(written, file.partition)] : [];
    return await table.commit({ add, remove: [file] });
  } finally {
    await rows.close();
    rmSync(copy);
  }
}

/** Returns all files that a store lists under a folder. */
export async function listed(store: LakeStore, folder: string): Promise<StoredFile[]> {
  const files: StoredFile[] = [];
  for await (const file of store.list(folder)) files.push(file);
  return files;
}

/** Reads a table's log from disk, entry by entry. */
export function logOf(root: string): Record<string, { path: string; [field: string]: unknown }>[][] {
  const folder = join(root, 'acme/interactions/_delta_log');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) =>
      readFileSync(join(folder, name), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    );
}

/** Returns a version's files, found by reading the log from the start. */
export function filesAt(root: string, version: number): string[] {
  const files = new Set<string>();
  for (const actions of logOf(root).slice(0, version + 1))
    for (const { add, remove } of actions) {
      if (remove) files.delete(remove.path);
      if (add) files.add(add.path);
    }
  return [...files];
}

/** Returns the rows that DuckDB reads from these files, sorted by id, each with its day. */
export async function rowsIn(root: string, files: readonly string[]): Promise<unknown[]> {
  if (files.length === 0) return [];
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const paths = files.map((file) => `'${join(root, 'acme/interactions', file)}'`).join(', ');
  const instant = (name: string) =>
    `strftime(${name} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as ${name}`;
  const reader = await connection.runAndReadAll(
    `select * replace (${instant('event_time')}, ${instant('created')})
     from read_parquet([${paths}], hive_partitioning = true, union_by_name = true) order by interaction_id`,
  );
  const rows = reader.getRowObjectsJson();
  connection.closeSync();
  instance.closeSync();
  return rows;
}

/** Returns the rows as readers should return them. */
export function asRead(rows: readonly LakeRow[]): unknown[] {
  return rows
    .toSorted((one, other) => (one.interaction_id < other.interaction_id ? -1 : 1))
    .map((row) => ({
      ...row,
      created: row.created.replace(/Z$/, '000Z'),
      received_on: row.created.slice(0, 10),
    }));
}
