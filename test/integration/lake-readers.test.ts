// @module-tag full

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { compact } from '../../src/lake/table/compact.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { type LakeColumn, lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { compactVersions } from '../../src/lake/versions/version-table.ts';
import { ChangingRecords } from '../support/changing-records.ts';
import { hasTool } from '../support/has-tool.ts';
import {
  append,
  asRead,
  day,
  dayMs,
  eraseFrom,
  filesAt,
  type LakeRow,
  linesOf,
  newRows,
  rowsIn,
  testLake,
} from '../support/lake.ts';
import { currentRecords, textsOf } from '../support/version-rows.ts';

/** Third-party readers must find the same rows at every version. */

const run = promisify(execFile);
const it = test.skipIf(!hasTool('readers of the lake'));

interface Found {
  readonly deltalake: unknown[];
  readonly polars: unknown[];
  readonly position: number | null;
}

/** Returns the rows that deltalake and Polars read at each of these versions. */
function readVersions(root: string, versions: readonly number[]): Promise<Found[]> {
  return runPython('read-lake.py', join(root, 'acme/interactions'), ...versions.map(String));
}

async function runPython<T>(program: string, ...args: readonly string[]): Promise<T> {
  const path = fileURLToPath(new URL(`../support/${program}`, import.meta.url));
  const python = join(needTool('readers of the lake'), 'python');
  const { stdout } = await run(python, [path, ...args], { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout);
}

it('deltalake, Polars and DuckDB read the same rows at every version, with and without a checkpoint', async () => {
  const { root, parquet, open } = testLake();
  const table = await open();
  const versions: { rows: LakeRow[]; position: number | null }[] = [{ rows: [], position: null }];
  const note = (rows: LakeRow[], position: number | null) => versions.push({ rows, position });
  let rows: LakeRow[] = [];
  for (let at = 1; at <= 12; at++) {
    const some = newRows(40, dayMs + (at % 3) * 86_400_000 + at * 100);
    expect(await append(table, parquet, some, at * 10)).toBe('committed');
    rows = [...rows, ...some];
    note(rows, at * 10);
  }
  expect(await compact(table, parquet, day)).toBe('committed');
  note(rows, 120);
  const [file] = table.files.filter((one) => one.partition === '2026-03-15');
  const erased = rows
    .filter(({ created, student_id }) => created.startsWith('2026-03-15') && student_id !== null)
    .slice(0, 3);
  const people = erased.map(({ student_id }) => student_id);
  expect(await eraseFrom(table, parquet, file!, { people })).toBe('committed');
  rows = rows.filter((row) => !erased.includes(row));
  note(rows, 120);
  for (let at = 15; at <= 22; at++) {
    const some = newRows(5, dayMs + 4 * 86_400_000 + at * 100);
    await append(table, parquet, some, at * 10);
    rows = [...rows, ...some];
    note(rows, at * 10);
    await table.checkpoint();
  }
  expect(table.version).toBe(22);

  const asked = [0, 1, 2, 5, 12, 13, 14, 15, 20, 21, 22];
  const found = await readVersions(root, asked);
  for (const [at, version] of asked.entries()) {
    const expected = versions[version]!;
    const read = asRead(expected.rows);
    expect(await rowsIn(root, filesAt(root, version)), `DuckDB, version ${version}`).toEqual(read);
    expect(found[at]?.deltalake, `deltalake, version ${version}`).toEqual(read);
    expect(found[at]?.polars, `Polars, version ${version}`).toEqual(read);
    expect(found[at]?.position).toBe(expected.position);
  }
});

it('deltalake reads a table whose log begins with a checkpoint', async () => {
  const { root, parquet, open } = testLake();
  const table = await open();
  let rows: LakeRow[] = [];
  for (let at = 1; at <= 21; at++) {
    const some = newRows(3, dayMs + at * 100);
    await append(table, parquet, some, at);
    rows = [...rows, ...some];
  }
  await table.checkpoint();
  const log = join(root, 'acme/interactions/_delta_log');
  await run('find', [log, '-name', '*.json', '-delete']);
  const [found] = await readVersions(root, [21]);
  expect(found).toEqual({ deltalake: asRead(rows), polars: asRead(rows), position: 21 });
});

it('all of them find the same current records of a table of versions, at every version', async () => {
  const lake = testLake();
  const { root, parquet, store } = lake;
  const type = 'transactions';
  const schema = lakeSchema(type);
  const table = await DeltaTable.open(store, `acme/${type}`, schema, parquet);
  const records = new ChangingRecords();
  for (const referred of ['shops', 'customers'] as const) records.batch(referred, 5, 0);
  const current = new Map<string, Record<string, string | null>>();
  const versions: string[][] = [[]];
  for (let change = 1; change <= 25; change++) {
    const sent = records.batch(type, 20, 40) as TransactionRow[];
    const lines = linesOf(
      parquet,
      sent.map((record) => ({ ...record, _change: change, _deleted: record.is_deleted })),
    );
    const written = await parquet.write(lines, schema);
    expect(await table.commit({ add: [await table.put(written!)] })).toBe('committed');
    for (const record of sent)
      if (record.is_deleted) current.delete(record.transaction_id);
      else current.set(record.transaction_id, textOf(record));
    versions.push(textsOf(type, [...current.values()]));
    if ((await compactVersions(table, parquet)) === 'committed') versions.push(versions.at(-1)!);
    await table.checkpoint();
  }
  const asked = [1, 2, 3, 10, 19, 20, table.version];
  const folder = join(root, 'acme', type);
  const found = await runPython<Record<'deltalake' | 'polars', Record<string, string>[]>[]>(
    'read-current.py',
    folder,
    'transaction_id',
    ...asked.map(String),
  );
  for (const [at, version] of asked.entries()) {
    expect(await currentRecords(folder, type, version), `DuckDB, ${version}`).toEqual(versions[version]);
    expect(textsOf(type, found[at]!.deltalake), `deltalake, ${version}`).toEqual(versions[version]);
    expect(textsOf(type, found[at]!.polars), `Polars, ${version}`).toEqual(versions[version]);
  }
  // Merges have dropped most of the old record versions.
  expect(table.files.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(25 * 30);
});

interface TransactionRow {
  readonly transaction_id: string;
  readonly is_deleted: boolean;
  readonly [field: string]: unknown;
}

/** Returns a record as a reader should return it. */
function textOf(record: TransactionRow): Record<string, string | null> {
  const text = ({ name, type }: LakeColumn): string | null => {
    const value = record[name] ?? null;
    if (value === null) return null;
    if (type === 'decimal(38,9)') {
      const [whole, fraction = ''] = (value === 1e-9 ? '0.000000001' : String(value)).split('.');
      return `${whole}.${fraction.padEnd(9, '0')}`;
    }
    if (type !== 'timestamp') return String(value);
    const micros = /\.\d{3}(\d{3})Z$/.exec(String(value))?.[1] ?? '000';
    return `${Date.parse(String(value))}${micros}`;
  };
  return Object.fromEntries(lakeSchema('transactions').columns.map((column) => [column.name, text(column)]));
}
