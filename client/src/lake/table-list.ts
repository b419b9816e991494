import type { Connection } from '../connection.ts';
import { isObject, unexpected } from '../errors.ts';
import type { components } from '../generated/api.ts';
import { limits } from '../limits.ts';
import { listIn, readAnswers } from '../reading/read-pages.ts';

type Page = components['schemas']['LakeFilePage'];

export interface RemoteFile {
  readonly fileId: string;
  readonly partition: Readonly<Record<string, string>>;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** The path relative to the table's folder. */
  readonly path: string;
}

/** One version of a table. */
export interface RemoteTable extends Omit<Page, 'files' | 'next_cursor'> {
  readonly files: readonly RemoteFile[];
}

export const tableName = /^[a-z][a-z0-9_]{0,62}$/;
export const fileIdForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Matches the name of a partition's folder: `column=value`. */
export const partitionFolder = /^[a-z][a-z0-9_]{0,62}=[0-9A-Za-z-]{1,64}$/;

/**
 * Lists a table's files. Builds paths only from validated parts, so that a server cannot make a pull write outside the
 * folder.
 */
export async function listTable(
  connection: Connection,
  table: string,
  signal: AbortSignal | undefined,
): Promise<RemoteTable> {
  const path = `/v1/lake/${table}/files`;
  const call = { path, query: { limit: limits.lakeFilesPerPage }, signal };
  const files: RemoteFile[] = [];
  let first: Page | undefined;
  for await (const page of readAnswers<Page>(connection, call)) {
    first ??= page;
    if (!isDescribed(page) || page.version !== first.version) throw invalidList();
    for (const file of listIn<Record<string, unknown>>(page, 'files'))
      files.push(checkedFile(file, page.partition_columns));
    if (files.length > limits.lakeFilesMax) throw invalidList();
  }
  if (!first || new Set(files.map(({ fileId }) => fileId)).size !== files.length) throw invalidList();
  const { version, table_id, description, schema, partition_columns } = first;
  return { table, version, table_id, description, schema, partition_columns, files };
}

function isDescribed(page: Page): boolean {
  const { version, table_id, description, schema, partition_columns: columns } = page;
  const texts = [table_id, description, schema];
  return (
    isCount(version) &&
    texts.every((text) => typeof text === 'string') &&
    Array.isArray(columns) &&
    columns.length <= 1 &&
    columns.every((column) => typeof column === 'string')
  );
}

function checkedFile(file: Record<string, unknown>, [column]: readonly string[]): RemoteFile {
  const { file_id: fileId, partition, rows, bytes, sha256 } = file;
  if (typeof fileId !== 'string' || !fileIdForm.test(fileId) || !isCount(rows) || !isCount(bytes))
    throw invalidList();
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) throw invalidList();
  const known = { fileId, rows, bytes, sha256 };
  if (column === undefined) return { ...known, partition: {}, path: `${fileId}.parquet` };
  const value = isObject(partition) && Object.hasOwn(partition, column) ? partition[column] : undefined;
  const folder = `${column}=${value}`;
  if (typeof value !== 'string' || !partitionFolder.test(folder)) throw invalidList();
  return { ...known, partition: { [column]: value }, path: `${folder}/${fileId}.parquet` };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function invalidList() {
  return unexpected('The list of files has an unexpected form');
}
