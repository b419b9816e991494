import { realpathSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { resources, type UploadType } from '../generated/resources.ts';
import { FileError, withPath } from '../parsing/file-error.ts';
import { type FileFormat, formatOfName, typeOfName } from '../parsing/file-name.ts';

/** Returns the format that the file name indicates, ignoring .gz and .zst. */
export function formatOf(path: string): FileFormat | undefined {
  return formatOfName(basename(path));
}

/** Returns what the position of a record in the file counts. */
export function unitOf(path: string): string {
  const format = formatOf(path);
  if (format === 'xlsx') return 'row';
  return format === 'json' || format === 'parquet' ? 'record' : 'line';
}

/** Returns the type that the file name indicates. */
export function typeOf(path: string): UploadType {
  return typeOfName(basename(path));
}

export interface Found {
  readonly files: readonly { readonly path: string; readonly type: UploadType }[];
  /** The files in a folder that are not data files. */
  readonly skipped: readonly string[];
  /** The reasons why some files cannot be read. */
  readonly problems: readonly string[];
}

/**
 * Returns the files to read in dependency order, so that types that others refer to come first. A folder stands for its data
 * files. Files in subfolders and files of failed records must be passed explicitly.
 */
export async function findFiles(paths: readonly string[], type?: UploadType): Promise<Found> {
  const found: string[] = [];
  const skipped: string[] = [];
  const problems: string[] = [];
  const collect = async (path: string, find: () => void | Promise<void>) => {
    try {
      await find();
    } catch (error) {
      const placed = withPath(path, error);
      if (!(placed instanceof FileError)) throw error;
      problems.push(...placed.lines);
    }
  };
  for (const path of paths)
    await collect(path, async () => {
      const isFolder = path !== '-' && (await statOf(path)).isDirectory();
      found.push(...(isFolder ? await filesIn(path, skipped) : [path]));
    });
  const placed = found.map((path) => resolve(path));
  const overwritten = found.find((_, at) =>
    placed.some((other) => placed[at]?.startsWith(`${other}.failed.`)),
  );
  if (overwritten !== undefined)
    problems.push(
      `${overwritten}: it would be replaced while the file it came from is uploaded; upload it alone`,
    );
  const files: { path: string; type: UploadType }[] = [];
  const byRealPath = new Map<string, string>();
  for (const path of found) {
    const realPath = path === '-' ? path : realPathOf(path);
    const same = byRealPath.get(realPath);
    if (same === undefined) byRealPath.set(realPath, path);
    else if (resolve(same) !== resolve(path)) skipped.push(`${path} (the same file as ${same})`);
  }
  for (const path of byRealPath.values())
    await collect(path, () => {
      if (type === undefined && path === '-')
        throw new FileError('it has no name that contains its type; specify the type with --type');
      files.push({ path, type: type ?? typeOf(path) });
    });
  files.sort((a, b) => resources[a.type].order - resources[b.type].order);
  return { files, skipped, problems };
}

/**
 * Returns the file's own path, whatever path or symbolic link leads to it. A file must be uploaded once, by one run at a time,
 * with one journal. If it cannot be found, returns the path as it was given.
 */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return resolve(path);
  }
}

async function statOf(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new FileError(
      error.code === 'ENOENT'
        ? 'there is no such file or folder; check its name'
        : `it cannot be read (${error.code}); check that you may read it`,
    );
  });
}

/** Matches files without data to upload: hidden files, journals, the mapping, and what would have failed in a dry run. */
const noData = /^\.|\.journal(\.new)?$|^mapping\.json$|\.dry-run\.failed\.(ndjson|csv)$/;
export const failedRecords = /\.failed\.(ndjson|csv)(\.(gz|zst))?$/i;

async function filesIn(folder: string, skipped: string[]): Promise<string[]> {
  const names: string[] = [];
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (noData.test(entry.name)) continue;
    if (entry.isDirectory()) skipped.push(`${path} (a folder)`);
    else if (failedRecords.test(entry.name)) skipped.push(path);
    else if (formatOf(entry.name) === undefined) skipped.push(`${path} (not a format that can be read)`);
    else names.push(path);
  }
  if (names.length === 0)
    throw new FileError('there is no CSV, NDJSON, JSON, Parquet or .xlsx file in this folder; try another');
  return names;
}
