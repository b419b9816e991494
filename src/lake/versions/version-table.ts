import { rm } from 'node:fs/promises';
import type { ResourceType } from '../../registry/resources.ts';
import { LakeTaken } from '../lake-progress.ts';
import { type LastChange, txnOf } from '../last-change.ts';
import { lakeLimits } from '../limits.ts';
import type { Spool } from '../spool.ts';
import { type Rewritten, rowsOf, withCopies } from '../table/compact.ts';
import type { DeltaTable } from '../table/delta-table.ts';
import type { ParquetWriter, Written } from '../table/parquet-writer.ts';
import type { DataFile } from '../table/table-state.ts';
import { versionLimits } from './limits.ts';
import { type Merge, nextMerge, partitionOf } from './next-merge.ts';

/** An organisation's table for one record type in the lake. It has one row per version. */
export class VersionTable {
  readonly #type: ResourceType;
  readonly delta: DeltaTable;
  readonly #parquet: ParquetWriter;

  constructor(type: ResourceType, delta: DeltaTable, parquet: ParquetWriter) {
    this.#type = type;
    this.delta = delta;
    this.#parquet = parquet;
  }

  /** If `isNew` is set, a copy starts and replaces the whole table, which may contain records that are gone. */
  async append(spool: Spool, lastChange: LastChange, isNew = false): Promise<void> {
    const lines = await spool.finishVersions(this.#type);
    const written = lines && (await this.#parquet.write(lines, this.delta.schema));
    const add = written ? [await this.delta.put(written)] : [];
    const remove = isNew ? this.delta.files : [];
    if (add.length === 0 && remove.length === 0) return;
    const txn = txnOf(lastChange);
    if ((await this.delta.commit({ add, remove, txn })) === 'conflict') throw new LakeTaken();
  }

  async tend(): Promise<void> {
    for (let merges = 0; merges < versionLimits.mergesPerStep; merges++)
      if ((await compactVersions(this.delta, this.#parquet)) !== 'committed') break;
    await this.delta.checkpoint();
    await this.delta.vacuumIfDue(lakeLimits.commitsPerVacuum);
  }
}

/**
 * Drops versions that are superseded by a newer one in the same merge. The commit is marked as not changing any data,
 * because readers that follow the log have already read the newer versions.
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
