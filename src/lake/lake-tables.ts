import { type LogState, stateOf } from '../changes/change-log.ts';
import type { Pool } from '../postgres/pool.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { InteractionTable } from './interaction-table.ts';
import type { Versions } from './lake-progress.ts';
import { isInLog, type LastChange, lastChangeIn } from './last-change.ts';
import type { LakeStore } from './store/lake-store.ts';
import { DeltaTable } from './table/delta-table.ts';
import { lakeSchema, lakeTypes } from './table/lake-schema.ts';
import type { ParquetWriter } from './table/parquet-writer.ts';
import { VersionTable } from './versions/version-table.ts';

/** A table was deleted or replaced by an older copy, or it contains changes that the database has lost. */
export class TableLost extends Error {
  readonly table: string;

  constructor(type: UploadType) {
    const { name } = lakeSchema(type);
    super(`the table ${name} of the lake has lost commits`);
    this.table = name;
  }
}

interface TablesParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  readonly parquet: ParquetWriter;
}

/** A step opens only the tables that it needs. The others cause one request each, to notice that a table was deleted. */
export class LakeTables {
  readonly #parts: TablesParts;
  readonly #organisationId: string;
  #interactions: InteractionTable | undefined;
  readonly #records = new Map<ResourceType, VersionTable>();
  #versions: Versions = {};
  /** Known to be complete and current, because this step has used them. */
  readonly #used = new Set<InteractionTable | VersionTable>();
  #log: LogState | undefined;

  constructor(parts: TablesParts, organisationId: string) {
    this.#parts = parts;
    this.#organisationId = organisationId;
  }

  /** Must be called at the start of each step. */
  beginStep(versions: Versions): void {
    this.#versions = versions;
    this.#used.clear();
    this.#log = undefined;
  }

  async interactions(): Promise<InteractionTable> {
    const create = (delta: DeltaTable) => new InteractionTable(delta, this.#parts.parquet);
    this.#interactions = await this.#use('interactions', this.#interactions, create);
    return this.#interactions;
  }

  async versions(type: ResourceType): Promise<VersionTable> {
    const create = (delta: DeltaTable) => new VersionTable(type, delta, this.#parts.parquet);
    const table = await this.#use(type, this.#records.get(type), create);
    this.#records.set(type, table);
    return table;
  }

  /** Throws if one of the tables contains changes that the log has lost. */
  async compareWithLog(): Promise<void> {
    this.#log = undefined;
    for (const type of lakeTypes) {
      const { delta } = type === 'interactions' ? await this.interactions() : await this.versions(type);
      if (!(await this.#isInLog(lastChangeIn(delta)))) throw new TableLost(type);
    }
  }

  /** Throws if a record table was deleted or replaced by an older copy, even if this step has no rows for it. */
  async refuseLost(): Promise<void> {
    const { interactions: _, ...records } = this.#versions;
    const written = Object.entries(records) as [ResourceType, number][];
    const areStored = await Promise.all(
      written.map(([type, version]) => DeltaTable.hasEntry(this.#parts.store, this.#folderOf(type), version)),
    );
    // The entry may also have been vacuumed, after later merges.
    for (const [at, [type]] of written.entries()) if (!areStored[at]) await this.versions(type);
  }

  async tend(): Promise<void> {
    for (const table of this.#used) await table.tend();
  }

  async #use<T extends InteractionTable | VersionTable>(
    type: UploadType,
    known: T | undefined,
    create: (delta: DeltaTable) => T,
  ): Promise<T> {
    if (known && this.#used.has(known)) return known;
    const table = known && (await isCurrent(known.delta)) ? known : create(await this.#open(type));
    const { delta } = table;
    if (delta.version < (this.#versions[type] ?? 0) || !(await this.#isInLog(lastChangeIn(delta))))
      throw new TableLost(type);
    this.#used.add(table);
    return table;
  }

  #open(type: UploadType): Promise<DeltaTable> {
    const { store, parquet } = this.#parts;
    return DeltaTable.open(store, this.#folderOf(type), lakeSchema(type), parquet);
  }

  #folderOf(type: UploadType): string {
    return `${this.#organisationId}/${lakeSchema(type).name}`;
  }

  async #isInLog(change: LastChange): Promise<boolean> {
    if (this.#log && isInLog(change, this.#log)) return true;
    // Another process may have written later changes since the log was last read.
    this.#log = await stateOf(this.#parts.pool, this.#organisationId);
    return isInLog(change, this.#log);
  }
}

/** Another process may have written the lake while this one did not hold the slot. */
async function isCurrent(table: DeltaTable): Promise<boolean> {
  const { version } = table;
  if (!(await table.isStored())) return false;
  await table.refresh();
  return table.version === version;
}
