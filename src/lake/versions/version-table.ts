import type { ResourceType } from '../../registry/resources.ts';
import { LakeTaken } from '../lake-progress.ts';
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
  readonly #organisationId: string;
  readonly #type: ResourceType;
  readonly #delta: DeltaTable;
  readonly #parquet: ParquetWriter;

  private constructor(organisationId: string, type: ResourceType, delta: DeltaTable, parquet: ParquetWriter) {
    this.#organisationId = organisationId;
    this.#type = type;
    this.#delta = delta;
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
    return new VersionTable(organisationId, type, delta, parquet);
  }

  isStored(): Promise<boolean> {
    return this.#delta.isStored();
  }

  /**
   * The number of the last change that the table contains. All earlier changes to records of this type are in the table
   * as well.
   */
  get position(): number {
    return this.#delta.positionOf(this.#organisationId) ?? 0;
  }

  /**
   * Commits the spooled versions. If `isNew` is set, they are the start of a copy and replace the whole table, which may
   * contain changes that the database has lost and whose numbers are assigned again. Returns the table's new position, or
   * the old position if there was nothing to commit.
   */
  async append(spool: Spool, position: number, isNew = false): Promise<number> {
    const lines = await spool.finishVersions(this.#type);
    const written = lines && (await this.#parquet.write(lines, this.#delta.schema));
    const add = written ? [await this.#delta.put(written)] : [];
    const remove = isNew ? this.#delta.files : [];
    const isAhead = isNew && this.position > position;
    if (add.length === 0 && remove.length === 0 && !isAhead) return this.position;
    // If the table has disappeared from the store, a commit would not conflict with anything.
    if (!(await this.#delta.isStored())) throw new LakeTaken();
    const txn = { appId: this.#organisationId, version: position };
    if ((await this.#delta.commit({ add, remove, txn })) === 'conflict') throw new LakeTaken();
    return position;
  }

  /** Merges files, writes a checkpoint, and deletes old files. Each of these happens only when it is due. */
  async tend(): Promise<void> {
    for (let merges = 0; merges < versionLimits.mergesPerStep; merges++)
      if ((await compactVersions(this.#delta, this.#parquet)) !== 'committed') break;
    await this.#delta.checkpoint();
    const { commitsPerVacuum, removedKeptMs } = lakeLimits;
    await this.#delta.vacuumInTurn(commitsPerVacuum, new Date(Date.now() - removedKeptMs));
  }
}
