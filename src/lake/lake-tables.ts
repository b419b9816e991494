import type { ResourceType } from '../registry/resources.ts';
import type { UploadType } from '../registry/upload-types.ts';
import type { Positions } from './lake-progress.ts';
import { LakeTable } from './lake-table.ts';
import type { LakeStore } from './store/lake-store.ts';
import type { ParquetWriter } from './table/parquet-writer.ts';
import { VersionTable } from './versions/version-table.ts';

/** Thrown if a table is missing commits, because it was deleted or replaced by an older copy. */
export class TableLost extends Error {
  constructor() {
    super('a table of the lake has lost commits');
  }
}

/**
 * An organisation's tables. A step opens only the tables that it needs, so record types without changes cause no requests
 * to the store.
 */
export class LakeTables {
  readonly #store: LakeStore;
  readonly #parquet: ParquetWriter;
  readonly #organisationId: string;
  #interactions: LakeTable | undefined;
  readonly #versions = new Map<ResourceType, VersionTable>();
  #positions: Positions = {};
  /** The tables that this step has used, which are known to exist in the store. */
  readonly #used = new Set<LakeTable | VersionTable>();

  constructor(store: LakeStore, parquet: ParquetWriter, organisationId: string) {
    this.#store = store;
    this.#parquet = parquet;
    this.#organisationId = organisationId;
  }

  /** Sets the tables' last known positions. Must be called at the start of each step. */
  beginStep(positions: Positions): void {
    this.#positions = positions;
    this.#used.clear();
  }

  async interactions(): Promise<LakeTable> {
    this.#interactions = await this.#use('interactions', this.#interactions, () =>
      LakeTable.open(this.#store, this.#parquet, this.#organisationId),
    );
    return this.#interactions;
  }

  async versions(type: ResourceType): Promise<VersionTable> {
    const table = await this.#use(type, this.#versions.get(type), () =>
      VersionTable.open(this.#store, this.#parquet, this.#organisationId, type),
    );
    this.#versions.set(type, table);
    return table;
  }

  /**
   * Merges small files and deletes old files in the tables that the last step used. The amount of work per call is
   * limited.
   */
  async tend(): Promise<void> {
    for (const table of this.#used) await table.tend();
  }

  async #use<T extends LakeTable | VersionTable>(
    type: UploadType,
    known: T | undefined,
    open: () => Promise<T>,
  ): Promise<T> {
    if (known && this.#used.has(known)) return known;
    const table = known && (await known.isStored()) ? known : await open();
    if (table.position < (this.#positions[type] ?? 0)) throw new TableLost();
    this.#used.add(table);
    return table;
  }
}
