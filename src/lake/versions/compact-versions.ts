import { rm } from 'node:fs/promises';
import { type Rewritten, rowsOf, withCopies } from '../table/compact.ts';
import type { DeltaTable } from '../table/delta-table.ts';
import type { ParquetWriter, Written } from '../table/parquet-writer.ts';
import type { DataFile } from '../table/table-state.ts';
import { type Merge, nextMerge, partitionOf } from './next-merge.ts';

/**
 * Drops every version that is superseded by a newer one in the same merge. The current state of the table stays the
 * same, so the commit is marked as not changing any data. Readers that follow the log have already read the newer
 * versions.
 */
export async function compactVersions(table: DeltaTable, parquet: ParquetWriter): Promise<Rewritten> {
  const merge = nextMerge(table.files);
  if (!merge) return 'nothing';
  const { files } = merge;
  return withCopies(table, files, async (copies) => {
    const parts = await rewrite(table, parquet, merge, copies);
    const add: DataFile[] = [];
    try {
      for (const { bucket, written } of parts) add.push(await table.put(written, partitionOf(bucket)));
    } finally {
      for (const { written } of parts) await rm(written.localFile, { force: true });
    }
    // Each file has at most one version per id, so the result has at least as many rows as the largest file.
    const [rows, rowsMin] = [rowsOf(add), Math.max(...files.map((file) => file.rows))];
    if (rows < rowsMin || rows > rowsOf(files))
      throw new Error(`merging ${rowsOf(files)} versions has made ${rows}`);
    return table.commit({ add, remove: files, dataChange: false });
  });
}

async function rewrite(
  { schema }: DeltaTable,
  parquet: ParquetWriter,
  { bucket, isSplit }: Merge,
  copies: readonly string[],
): Promise<{ bucket: string; written: Written }[]> {
  if (!isSplit) {
    const written = await parquet.merge(copies, schema);
    return written ? [{ bucket, written }] : [];
  }
  const parts = await parquet.split(copies, schema, bucket.length);
  return parts.map(({ digit, written }) => ({ bucket: bucket + digit, written }));
}
