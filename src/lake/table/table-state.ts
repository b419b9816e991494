import type { Stats } from './parquet-writer.ts';

/** One line of the log. Exactly one of these fields is set. */
export interface Action {
  readonly protocol?: { readonly minReaderVersion: number; readonly minWriterVersion: number };
  readonly metaData?: MetaData;
  readonly txn?: Txn;
  readonly add?: Add;
  readonly remove?: Remove;
  /** Information for people who inspect the history. The `txnId` makes each commit's bytes unique. */
  readonly commitInfo?: Readonly<Record<string, unknown>>;
}

export interface MetaData {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly format: { readonly provider: 'parquet'; readonly options: object };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly configuration: object;
  readonly createdTime: number;
}

/** A writer's progress, which it uses to recognise a commit that it has already made. */
export interface Txn {
  readonly appId: string;
  readonly version: number;
}

interface Add {
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string>>;
  readonly size: number;
  readonly modificationTime: number;
  readonly dataChange: boolean;
  /** Optional for other programs, like the tags. */
  readonly stats?: string | null;
  readonly tags?: { readonly sha256?: string } | null;
}

interface Remove {
  readonly path: string;
  readonly deletionTimestamp: number;
  readonly dataChange: boolean;
}

export interface DataFile {
  /** The path relative to the table's folder. */
  readonly path: string;
  /** The day of the interactions, or the bucket of the record versions. Undefined for the root bucket. */
  readonly partition: string | undefined;
  readonly rows: number;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly stats: Stats;
  readonly sha256: string;
}

export const protocol = { minReaderVersion: 1, minWriterVersion: 2 };

export class TableState {
  readonly #folder: string;
  metaData: MetaData | undefined;
  readonly files = new Map<string, DataFile>();
  /** Removal times by path. */
  readonly removed = new Map<string, number>();
  readonly positions = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  apply({ protocol: asked, metaData, txn, add, remove }: Action): void {
    const { minReaderVersion, minWriterVersion } = protocol;
    if (asked && (asked.minReaderVersion > minReaderVersion || asked.minWriterVersion > minWriterVersion))
      throw writtenByOthers(this.#folder, 'changed the protocol of');
    if (metaData) this.metaData = metaData;
    if (txn) this.positions.set(txn.appId, txn.version);
    if (remove) {
      this.files.delete(remove.path);
      this.removed.set(remove.path, remove.deletionTimestamp);
    }
    if (add) {
      // An erasure reads files in the order of their names, and deletes old files by their names.
      if (!add.tags?.sha256 || !add.stats) throw writtenByOthers(this.#folder, 'added files to');
      this.files.set(add.path, fileOf(add, add.tags.sha256, add.stats));
      this.removed.delete(add.path);
    }
  }

  forgetRemoved(beforeMs: number): void {
    for (const [path, deletionTimestamp] of this.removed)
      if (deletionTimestamp < beforeMs) this.removed.delete(path);
  }

  *actions(): Generator<Action> {
    yield { protocol };
    if (this.metaData) yield { metaData: this.metaData };
    for (const [appId, version] of this.positions) yield { txn: { appId, version } };
    for (const file of this.files.values())
      yield { add: addOf(file, this.metaData?.partitionColumns[0], false) };
    for (const [path, deletionTimestamp] of this.removed)
      yield { remove: { path, deletionTimestamp, dataChange: false } };
  }
}

function writtenByOthers(folder: string, what: string): Error {
  return new Error(
    `another program has ${what} the table ${folder} of the lake; other programs may only read. Switch the organisation's ` +
      'lake off, wait until its files are deleted, and switch it on again: then everything is copied again',
  );
}

function fileOf(add: Add, sha256: string, text: string): DataFile {
  const { path, partitionValues, size: bytes, modificationTime: modifiedMs } = add;
  const stats: Stats = JSON.parse(text);
  const partition = Object.values(partitionValues)[0] ?? /^[^/]+(?=\/)/.exec(path)?.[0];
  return { path, partition, rows: stats.numRecords, bytes, modifiedMs, stats, sha256 };
}

export function addOf(file: DataFile, dayColumn: string | undefined, dataChange: boolean): Add {
  const { path, partition, bytes, modifiedMs, stats, sha256 } = file;
  return {
    path,
    partitionValues: dayColumn !== undefined && partition !== undefined ? { [dayColumn]: partition } : {},
    size: bytes,
    modificationTime: modifiedMs,
    dataChange,
    stats: JSON.stringify(stats),
    tags: { sha256 },
  };
}
