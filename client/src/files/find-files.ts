import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { resources, type UploadType, uploadTypes } from '../generated/resources.ts';
import { FileError, withPath } from './file-error.ts';

export type FileFormat = 'csv' | 'ndjson' | 'json' | 'parquet' | 'xlsx';

const formats = new Map<string, FileFormat>([
  ['csv', 'csv'],
  ['tsv', 'csv'],
  ['ndjson', 'ndjson'],
  ['jsonl', 'ndjson'],
  ['json', 'json'],
  ['parquet', 'parquet'],
  ['xlsx', 'xlsx'],
]);

/** The format by the file's name, ignoring .gz or .zst. */
export function formatOf(path: string): FileFormat | undefined {
  const name = basename(path)
    .toLowerCase()
    .replace(/\.(gz|zst)$/, '');
  return formats.get(name.slice(name.lastIndexOf('.') + 1));
}

/**
 * The type by the file's name: transactions.csv, transactions-2026-03.csv.gz and export_shop_categories.json all name
 * one. The longest match wins, because shop-categories contains categories.
 */
export function typeOf(path: string): UploadType {
  const name = `-${basename(path)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')}-`;
  const named = uploadTypes.filter((type) => name.includes(`-${type}-`));
  const longest = named.filter((type) => !named.some((other) => other !== type && other.includes(type)));
  const [type] = longest;
  if (type !== undefined && longest.length === 1) return type;
  const what = type === undefined ? 'its name says no type' : `its name says ${longest.join(' and ')}`;
  throw new FileError(
    `${what}; name the type with --type, or begin the name with one of ${uploadTypes.join(', ')}`,
  );
}

/**
 * The files to read, in the order of the dependency table: types that others refer to come first. A folder stands for
 * its data files; files in its subfolders and files of failed records have to be named.
 */
export async function findFiles(
  paths: readonly string[],
  type?: UploadType,
): Promise<{ readonly path: string; readonly type: UploadType }[]> {
  const found: string[] = [];
  for (const path of paths) {
    const isFolder = path !== '-' && (await statOf(path)).isDirectory();
    found.push(...(isFolder ? await filesIn(path) : [path]));
  }
  if (type === undefined && found.includes('-'))
    throw new FileError('standard input has no name that says its type; name the type with --type');
  const overwritten = found.find((path) => found.some((other) => path.startsWith(`${other}.failed.`)));
  if (overwritten !== undefined)
    throw new FileError(
      `${overwritten}: it would be replaced while the file it came from is uploaded; upload it by itself`,
    );
  const files = [...new Set(found)].map((path) => ({ path, type: type ?? typeOfNamed(path) }));
  return files.sort((a, b) => resources[a.type].order - resources[b.type].order);
}

function typeOfNamed(path: string): UploadType {
  try {
    return typeOf(path);
  } catch (error) {
    throw withPath(path, error);
  }
}

async function statOf(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new FileError(
      error.code === 'ENOENT'
        ? `${path}: there is no such file or folder; check its name`
        : `${path}: it cannot be read (${error.code}); check who may read it`,
    );
  });
}

/** Files beside the data: failed records, and the mapping. */
function isNoData(name: string): boolean {
  return /\.failed\.(ndjson|csv)$|^mapping\.json$/.test(name);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .filter((name) => formatOf(name) !== undefined && !isNoData(name));
  if (names.length === 0)
    throw new FileError(
      `${folder}: there is no CSV, NDJSON, JSON, Parquet or .xlsx file in this folder; name another`,
    );
  return names.sort().map((name) => join(folder, name));
}
