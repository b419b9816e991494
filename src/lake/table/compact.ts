import { rm } from 'node:fs/promises';
import type { DeltaTable } from './delta-table.ts';
import type { ParquetWriter } from './parquet-writer.ts';
import type { DataFile } from './table-state.ts';

export type Rewritten = 'nothing' | 'committed' | 'conflict';

/** Readers see the same rows as before. */
export async function compact(table: DeltaTable, parquet: ParquetWriter, day: string): Promise<Rewritten> {
  const files = table.compactable(day);
  if (files.length === 0) return 'nothing';
  return withCopies(table, files, async (copies) => {
    const merged = await parquet.merge(copies, table.schema, { day });
    const rows = rowsOf(files);
    if (merged?.rows !== rows)
      throw new Error(`the merge produced ${merged?.rows ?? 0} rows instead of ${rows}`);
    const add = [await table.put(merged, day)];
    return table.commit({ add, remove: files, dataChange: false });
  });
}

/** The copies are in the order of the files. */
export async function withCopies<T>(
  table: DeltaTable,
  files: readonly DataFile[],
  work: (copies: readonly string[]) => Promise<T>,
): Promise<T> {
  const copies: string[] = [];
  try {
    for (const file of files) copies.push(await table.get(file));
    return await work(copies);
  } finally {
    for (const copy of copies) await rm(copy, { force: true });
  }
}

export function rowsOf(files: readonly DataFile[]): number {
  return files.reduce((sum, { rows }) => sum + rows, 0);
}
