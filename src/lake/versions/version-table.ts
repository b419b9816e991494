import type { ResourceType } from '../../registry/resources.ts';
import { LakeTaken } from '../lake-progress.ts';
import { type LastChange, txnOf } from '../last-change.ts';
import { lakeLimits } from '../limits.ts';
import type { Spool } from '../spool.ts';
import type { LakeStore } from '../store/lake-store.ts';
import { DeltaTable } from '../table/delta-table.ts';
import { lakeSchema } from '../table/lake-schema.ts';
import type { ParquetWriter } from '../table/parquet-writer.ts';
import { compactVersions } from './compact-versions.ts';
import { versionLimits } from './limits.ts';

/** An organisation's table for one record type in the lake. It has one row per version. */
export class VersionTable {
  readonly #type: ResourceType;
  readonly delta: DeltaTable;
  readonly #parquet: ParquetWriter;

  private constructor(type: ResourceType, delta: DeltaTable, parquet: ParquetWriter) {
    this.#type = type;
    this.delta = delta;
    this.#parquet = parquet;
  }

  static async open(
    store: LakeStore,
    parquet: ParquetWriter,
    organisationId: string,
    type: ResourceType,
  ): Promise<VersionTable> {
    const schema = lakeSchema(type);
    const delta = await DeltaTable.open(store, `${organisationId}/${schema.name}`, schema, parquet);
    return new VersionTable(type, delta, parquet);
  }

  /**
   * If `isNew` is set, the versions are the start of a copy and replace the whole table, which may contain records that
   * have since been removed.
   */
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
