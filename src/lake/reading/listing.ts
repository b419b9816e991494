import type { DeltaTable } from '../table/delta-table.ts';
import type { DataFile, MetaData } from '../table/table-state.ts';

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

export function listingOf({ version, files: unnamed }: DeltaTable, metaData: MetaData): Listing {
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

export function pageAfter(
  { files }: Listing,
  after: string | undefined,
  limit: number,
): { readonly files: readonly TableFile[]; readonly hasMore: boolean } {
  const found = after === undefined ? 0 : files.findIndex(({ fileId }) => fileId > after);
  const start = found < 0 ? files.length : found;
  return { files: files.slice(start, start + limit), hasMore: start + limit < files.length };
}
