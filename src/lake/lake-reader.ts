import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RequestError } from '../errors.ts';
import { lakeLimits } from './limits.ts';
import type { LakePlace } from './store/lake-place.ts';
import type { LakeStore } from './store/lake-store.ts';
import { DeltaTable } from './table/delta-table.ts';
import { lakeSchema, type lakeTypes } from './table/lake-schema.ts';
import { ParquetWriter } from './table/parquet-writer.ts';
import type { DataFile, MetaData } from './table/table-state.ts';

export type LakeTableType = (typeof lakeTypes)[number];

interface Open {
  readonly table: DeltaTable;
  readonly listing: Listing;
  readonly readMs: number;
}

/** Reads organisations' tables for `serve`. It never writes to the store. */
export class LakeReader {
  readonly #store: LakeStore;
  readonly #place: Pick<LakePlace, 'check' | 'isChecked'> | undefined;
  /** Least recently used first. */
  readonly #open = new Map<string, Open>();
  readonly #reading = new Map<string, Promise<Open | undefined>>();
  /** Reads log checkpoints, which are Parquet files. Until there is one, no folder and no DuckDB process is needed. */
  readonly #parquet = new ParquetWriter({
    folder: () => mkdtempSync(join(tmpdir(), `intake-lake-of-${process.pid}-`)),
    memoryMb: lakeLimits.readerMemoryMb,
    threads: 1,
  });

  constructor(store: LakeStore, place?: Pick<LakePlace, 'check' | 'isChecked'>) {
    this.#store = store;
    this.#place = place;
  }

  /**
   * Uses the newest version, or a cached one that is at most `oldestMs` old and not older than `versionMin`. Throws if the
   * newest version is older. Returns undefined if the table does not exist and no version was written.
   */
  async listing(
    organisationId: string,
    type: LakeTableType,
    versionMin?: number,
    oldestMs: number = lakeLimits.listingFreshMs,
  ): Promise<Listing | undefined> {
    const folder = folderOf(organisationId, type);
    const isNewEnough = (version = -1) => version >= (versionMin ?? -1);
    const known = this.#open.get(folder);
    const isFresh = known && performance.now() - known.readMs <= oldestMs;
    if (isFresh && isNewEnough(known.listing.version)) return known.listing;
    let listing = await this.#readShared(folder, type);
    // Another caller may have begun to read the log before this version was committed.
    if (!isNewEnough(listing?.version)) listing = await this.#readShared(folder, type);
    if (!isNewEnough(listing?.version)) throw lostVersions(type, listing?.version, versionMin);
    return listing;
  }

  /** Searches only the organisation's own table. */
  async file(organisationId: string, type: LakeTableType, fileId: string): Promise<TableFile | undefined> {
    // File ids are never reused, so a cached file stays valid. A file that is not in the cache may be new.
    for (const oldestMs of [lakeLimits.listingKnownMs, lakeLimits.listingFreshMs]) {
      const listing = await this.listing(organisationId, type, undefined, oldestMs);
      const file = listing?.byId.get(fileId);
      if (file) return file;
    }
    return undefined;
  }

  /**
   * The end is exclusive. Each chunk is requested only after the previous one was consumed, so a slow reader occupies
   * one chunk of memory and no connection to the store.
   */
  async *read(
    organisationId: string,
    type: LakeTableType,
    { path }: TableFile,
    { from, to }: { readonly from: number; readonly to: number },
  ): AsyncGenerator<Buffer> {
    const folder = folderOf(organisationId, type);
    for (let at = from; at < to; ) {
      const end = Math.min(at + lakeLimits.bytesPerPiece, to);
      const piece = await this.#store.readRange(`${folder}/${path}`, at, end).catch((error: unknown) => {
        throw new RequestError('lake_unavailable', { cause: error });
      });
      if (!piece) {
        // The file was replaced by a merge or an erasure, and was deleted after the log was read.
        this.#open.delete(folder);
        throw new RequestError('lake_file_not_found');
      }
      if (piece.length !== end - at) throw new Error('a file of the lake is shorter than its log entry says');
      yield piece;
      at = end;
    }
  }

  async close(): Promise<void> {
    await this.#parquet.close();
  }

  async #readShared(folder: string, type: LakeTableType): Promise<Listing | undefined> {
    let reading = this.#reading.get(folder);
    if (!reading) {
      reading = this.#read(folder, type, this.#open.get(folder)).finally(() => this.#reading.delete(folder));
      this.#reading.set(folder, reading);
    }
    const read = await reading.catch((error: unknown) => {
      throw new RequestError('lake_unavailable', { cause: error });
    });
    return read?.listing;
  }

  async #read(folder: string, type: LakeTableType, known: Open | undefined): Promise<Open | undefined> {
    const readMs = performance.now();
    if (!this.#place?.isChecked) await this.#place?.check();
    const table = await this.#table(folder, type, known?.table);
    this.#open.delete(folder);
    if (!table?.metaData) return undefined;
    const isSame = known?.table === table && known.listing.version === table.version;
    const read = { table, readMs, listing: isSame ? known.listing : listingOf(table, table.metaData) };
    this.#open.set(folder, read);
    this.#forgetOld();
    return read;
  }

  async #table(folder: string, type: LakeTableType, known?: DeltaTable): Promise<DeltaTable | undefined> {
    // A table that was deleted and recreated has different files under the same version numbers.
    if (known && (await known.isStored())) {
      await known.refresh();
      return known;
    }
    return DeltaTable.read(this.#store, folder, lakeSchema(type), this.#parquet);
  }

  #forgetOld(): void {
    let files = 0;
    for (const { table } of this.#open.values()) files += table.filesKnown;
    for (const [folder, { table }] of this.#open) {
      if (files <= lakeLimits.filesKnownMax || this.#open.size === 1) return;
      this.#open.delete(folder);
      files -= table.filesKnown;
    }
  }
}

function folderOf(organisationId: string, type: LakeTableType): string {
  return `${organisationId}/${lakeSchema(type).name}`;
}

function lostVersions(type: LakeTableType, found: number | undefined, written: number | undefined): Error {
  const has = found === undefined ? 'is missing' : `has version ${found}`;
  return new RequestError('lake_unavailable', {
    message:
      `The table ${lakeSchema(type).name} of the lake ${has}, but version ${written} was written. Send the request again ` +
      'later. If that does not help, ask the operator to switch the lake off, and on again when its files are deleted: ' +
      'then everything is copied again.',
  });
}

/** A file as clients see it. Its id reveals nothing about where it is stored. */
export interface TableFile extends DataFile {
  readonly fileId: string;
}

export interface Listing {
  readonly version: number;
  readonly metaData: MetaData;
  /** Sorted by id. */
  readonly files: readonly TableFile[];
  readonly byId: ReadonlyMap<string, TableFile>;
  readonly rows: number;
  readonly bytes: number;
}

const idInPath = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.parquet$/;

function listingOf({ version, files: unnamed }: DeltaTable, metaData: MetaData): Listing {
  const files = unnamed
    .map((file) => ({ ...file, fileId: idOf(file) }))
    .sort((one, other) => (one.fileId < other.fileId ? -1 : 1));
  return {
    version,
    metaData,
    files,
    byId: new Map(files.map((file) => [file.fileId, file])),
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

function idOf({ path }: DataFile): string {
  const fileId = idInPath.exec(path)?.[1];
  if (fileId === undefined) throw new Error('unexpected file name in the lake');
  return fileId;
}
