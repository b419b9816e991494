import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { LakeStore } from '../store/lake-store.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint-file.ts';
import { filesToMerge } from './files-to-merge.ts';
import { type LakeSchema, refuseOtherTypes, schemaString } from './lake-schema.ts';
import { tableLimits } from './limits.ts';
import type { ParquetWriter, Written } from './parquet-writer.ts';
import {
  type Action,
  addOf,
  type DataFile,
  type MetaData,
  protocol,
  TableState,
  type Txn,
} from './table-state.ts';
import { purge, vacuum } from './vacuum.ts';

interface Change {
  readonly add?: readonly DataFile[];
  readonly remove?: readonly DataFile[];
  readonly txn?: Txn;
  /** False if the rows stay the same, for example when files are merged. */
  readonly dataChange?: boolean;
}

/**
 * A Delta Lake table (reader version 1, writer version 2) in a folder of a store. Each version is a log file that is
 * created only if it does not exist. If two writers commit at the same time, one of them succeeds and the other one gets a
 * conflict, even if both assume that they hold the lease.
 */
export class DeltaTable {
  readonly folder: string;
  readonly schema: LakeSchema;
  readonly #store: LakeStore;
  readonly #parquet: ParquetWriter;
  #state: TableState;
  #version = -1;
  /**
   * The hash of the last entry that was read, which distinguishes the table from one that was created in its place. It is
   * undefined if only the checkpoint of this version was found.
   */
  #entryHash: string | undefined;
  #checkpointVersion = -1;
  #vacuumedVersion = -1;

  private constructor(store: LakeStore, folder: string, schema: LakeSchema, parquet: ParquetWriter) {
    this.#store = store;
    this.folder = folder;
    this.#state = new TableState(folder);
    this.schema = schema;
    this.#parquet = parquet;
  }

  /** Reads the log. Creates the table if it does not exist, and adds missing columns. */
  static async open(
    store: LakeStore,
    folder: string,
    schema: LakeSchema,
    parquet: ParquetWriter,
  ): Promise<DeltaTable> {
    const table = new DeltaTable(store, folder, schema, parquet);
    await table.refresh();
    while (table.#state.metaData?.schemaString !== schemaString(schema)) await table.#define();
    table.#vacuumedVersion = table.#version;
    return table;
  }

  /**
   * Reads the log of an existing table, and neither creates the table nor adds columns. Returns undefined if the table does
   * not exist.
   */
  static async read(
    store: LakeStore,
    folder: string,
    schema: LakeSchema,
    parquet: ParquetWriter,
  ): Promise<DeltaTable | undefined> {
    const table = new DeltaTable(store, folder, schema, parquet);
    await table.refresh();
    return table.metaData && table;
  }

  /** Entries before a checkpoint may have been vacuumed. */
  static async hasEntry(store: LakeStore, folder: string, version: number): Promise<boolean> {
    return (await store.read(`${folder}/${logFolder}/${padded(version)}.json`)) !== undefined;
  }

  get metaData(): MetaData | undefined {
    return this.#state.metaData;
  }

  get version(): number {
    return this.#version;
  }

  get files(): readonly DataFile[] {
    return [...this.#state.files.values()];
  }

  /** The number of files in the table, and of removed files that the log still lists. */
  get filesKnown(): number {
    return this.#state.files.size + this.#state.removed.size;
  }

  /** The version number in the last `txn` action of each writer. */
  get positions(): ReadonlyMap<string, number> {
    return this.#state.positions;
  }

  async refresh(): Promise<void> {
    await this.#load();
    for (let next = this.#version + 1; ; next++) {
      const entry = await this.#store.read(this.#entry(next));
      if (!entry) return;
      this.#apply(next, entry);
    }
  }

  /**
   * Returns whether the store still has the last version that was read. Returns false if the table was deleted, even if
   * another one with the same version was created in its place, and if the version was vacuumed.
   */
  async isStored(): Promise<boolean> {
    const hash = this.#entryHash;
    const entry = await this.#store.read(this.#entry(this.#version));
    if (entry) return hashOf(entry) === hash;
    // The entry was missing from the start if the table was read from a checkpoint and the entries up to it were deleted.
    return hash === undefined && (await this.#lastCheckpoint()) === this.#version;
  }

  /** Always deletes the local file, even if storing it fails. */
  async put({ localFile, rows, bytes, stats }: Written, partition?: string): Promise<DataFile> {
    const column = this.schema.day?.name;
    const inColumn = column === undefined ? '' : `${column}=`;
    const folder = partition === undefined ? '' : `${inColumn}${partition}/`;
    // The name starts with the version that the next commit builds on. Names are never reused, so that a late deletion
    // cannot remove a newer file.
    const path = `${folder}${padded(this.#version)}-${randomUUID()}.parquet`;
    try {
      const sha256 = await sha256Of(localFile);
      await this.#store.putFile(`${this.folder}/${path}`, localFile);
      return { path, partition, rows, bytes, modifiedMs: Date.now(), stats, sha256 };
    } finally {
      await rm(localFile);
    }
  }

  async get({ path }: DataFile): Promise<string> {
    const localFile = this.#parquet.newFile('parquet');
    await this.#getFile(`${this.folder}/${path}`, localFile);
    return localFile;
  }

  /**
   * Commits a change on top of the last version that was read. On a conflict, the table moves to the version that another
   * process committed. The added files are deleted, because no version refers to them, and the caller starts over. It is
   * also a conflict if `isStored` returns false: an entry in a deleted table's folder would never be removed, and versions
   * that were vacuumed would look like versions that nobody has committed. If this method throws, the change may or may not
   * have been committed. In that case the files are kept, and the caller also starts over.
   */
  async commit(change: Change): Promise<'committed' | 'conflict'> {
    const outcome = await this.#tryToCommit(change);
    if (outcome === 'conflict')
      for (const { path } of change.add ?? []) await this.#store.remove(`${this.folder}/${path}`);
    return outcome;
  }

  async #tryToCommit({ add = [], remove = [], txn, dataChange = true }: Change) {
    const nowMs = Date.now();
    if (!(await this.isStored())) return 'conflict';
    for (const { path } of remove)
      if (!this.#state.files.has(path)) throw new Error('a file to remove is not part of the table');
    if (add.some(({ path }) => versionOf(path) !== this.#version))
      throw new Error('a file was stored for another version of the table');
    const dayColumn = this.schema.day?.name;
    return this.#commit(dataChange ? 'WRITE' : 'OPTIMIZE', [
      ...(txn ? [{ txn }] : []),
      ...remove.map(({ path }) => ({ remove: { path, deletionTimestamp: nowMs, dataChange } })),
      ...add.map((file) => ({ add: addOf(file, dayColumn, dataChange) })),
    ]);
  }

  /** Readers and `open` start reading from the checkpoint. */
  async checkpoint(): Promise<void> {
    const version = this.#version;
    if (version - this.#checkpointVersion < tableLimits.commitsPerCheckpoint) return;
    this.#forgetRemoved();
    const actions = [...this.#state.actions()];
    const localFile = await writeCheckpoint(this.#parquet, actions);
    try {
      if (!(await this.isStored())) return;
      await this.#store.putFile(this.#log(`${padded(version)}.checkpoint.parquet`), localFile);
      await writeFile(localFile, JSON.stringify({ version, size: actions.length }));
      await this.#store.putFile(this.#log('_last_checkpoint'), localFile);
    } finally {
      await rm(localFile);
    }
    this.#checkpointVersion = version;
  }

  compactable(day: string): readonly DataFile[] {
    const today = new Date().toISOString().slice(0, 10);
    return filesToMerge(
      this.files.filter(({ partition }) => partition === day),
      day < today,
    );
  }

  /** Deletes files that were removed from the table before this time, and files that no version refers to. */
  async vacuum(olderThan: Date): Promise<void> {
    // Otherwise every file of a table that was created in its place would count as unused.
    if (!(await this.isStored())) return;
    await this.refresh();
    const { files, removed } = this.#state;
    const canBeAdded = (path: string) => versionOf(path) >= this.#version;
    const known = { files, removed, canBeAdded, checkpointVersion: this.#checkpointVersion };
    await vacuum(this.#store, this.folder, known, olderThan);
  }

  /** After this empty version, no writer can commit files that it prepared for an earlier version. */
  fence(): Promise<'committed' | 'conflict'> {
    return this.commit({ txn: { appId: 'fence', version: this.#version + 1 } });
  }

  /** Deletes every file that is not in the table and cannot be added to it. Older versions become unreadable. */
  async purge(day?: string): Promise<void> {
    const folder = day === undefined ? this.folder : `${this.folder}/${this.schema.day?.name}=${day}`;
    const isGone = (path: string) => !this.#state.files.has(path) && versionOf(path) < this.#version;
    await purge(this.#store, this.folder, folder, isGone);
  }

  /** Of removed files that the log still lists. */
  get removedDays(): readonly string[] {
    const begins = `${this.schema.day?.name}=`;
    const inDays = [...this.#state.removed.keys()].filter((path) => path.startsWith(begins));
    return [...new Set(inDays.map((path) => path.slice(begins.length, path.indexOf('/'))))];
  }

  /** Only once every `commits` commits, because `vacuum` lists all files. */
  async vacuumIfDue(commits: number): Promise<void> {
    const turnOf = (version: number) => Math.floor(version / commits);
    if (turnOf(this.#version) === turnOf(this.#vacuumedVersion)) return;
    this.#vacuumedVersion = this.#version;
    await this.vacuum(new Date(Date.now() - tableLimits.removedKeptMs));
  }

  async #load(): Promise<void> {
    const version = await this.#lastCheckpoint();
    if (version === undefined) return;
    if (version !== this.#checkpointVersion) this.#forgetRemoved();
    this.#checkpointVersion = version;
    if (version <= this.#version) return;
    const localFile = this.#parquet.newFile('parquet');
    await this.#getFile(this.#log(`${padded(version)}.checkpoint.parquet`), localFile);
    const state = new TableState(this.folder);
    try {
      for await (const action of readCheckpoint(this.#parquet, localFile)) state.apply(action);
    } finally {
      await rm(localFile);
    }
    const entry = await this.#store.read(this.#entry(version));
    this.#entryHash = entry && hashOf(entry);
    this.#state = state;
    this.#version = version;
    this.#forgetRemoved();
  }

  async #lastCheckpoint(): Promise<number | undefined> {
    const hint = await this.#store.read(this.#log('_last_checkpoint'));
    return hint && (JSON.parse(hint.toString()) as { version: number }).version;
  }

  #forgetRemoved(): void {
    this.#state.forgetRemoved(Date.now() - tableLimits.removedKeptMs);
  }

  async #getFile(path: string, localFile: string): Promise<void> {
    try {
      await this.#store.getFile(path, localFile);
    } catch (error) {
      await rm(localFile, { force: true });
      throw error;
    }
  }

  async #define(): Promise<void> {
    const { schema } = this;
    const before = this.#state.metaData;
    if (before) refuseOtherTypes(before.schemaString, schemaString(schema));
    const metaData: MetaData = {
      id: before?.id ?? randomUUID(),
      name: schema.name,
      description: schema.description,
      format: { provider: 'parquet', options: {} },
      schemaString: schemaString(schema),
      partitionColumns: schema.day ? [schema.day.name] : [],
      configuration: {},
      createdTime: before?.createdTime ?? Date.now(),
    };
    await this.#commit(before ? 'ADD COLUMNS' : 'CREATE TABLE', [
      ...(before ? [] : [{ protocol }]),
      { metaData },
    ]);
  }

  async #commit(operation: string, actions: readonly Action[]): Promise<'committed' | 'conflict'> {
    const version = this.#version + 1;
    const commitInfo = {
      timestamp: Date.now(),
      operation,
      operationParameters: {},
      engineInfo: 'intake',
      txnId: randomUUID(),
    };
    const lines = [{ commitInfo }, ...actions].map((action) => `${JSON.stringify(action)}\n`);
    const entry = Buffer.from(lines.join(''));
    if (await this.#store.create(this.#entry(version), entry)) {
      this.#apply(version, entry);
      return 'committed';
    }
    await this.refresh();
    return 'conflict';
  }

  #apply(version: number, entry: Buffer): void {
    if (version !== this.#version + 1) return;
    for (const action of actionsIn(entry)) this.#state.apply(action);
    this.#version = version;
    this.#entryHash = hashOf(entry);
  }

  #entry(version: number): string {
    return this.#log(`${padded(version)}.json`);
  }

  #log(name: string): string {
    return `${this.folder}/${logFolder}/${name}`;
  }
}

const logFolder = '_delta_log';

function padded(version: number): string {
  return String(version).padStart(20, '0');
}

/** Names sort by the version for which the files were stored. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Only the commit that follows this version can add the file. */
function versionOf(path: string): number {
  return Number(nameOf(path).slice(0, 20));
}

function hashOf(entry: Buffer): string {
  return createHash('sha256').update(entry).digest('hex');
}

async function sha256Of(localFile: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(localFile), hash);
  return hash.digest('hex');
}

function actionsIn(entry: Buffer): Action[] {
  return entry
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
