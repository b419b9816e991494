import type { UploadType } from '../generated/resources.ts';
import { schemas } from '../generated/schemas.ts';
import { nearest } from '../parsing/columns/nearest.ts';
import { FileError } from '../parsing/file-error.ts';
import type { FileOptions, OpenedFile } from '../parsing/opened-file.ts';
import type { Found } from './find-files.ts';
import { openFile } from './reading/read-file.ts';

/**
 * Opens every file and throws a single error with all problems in all files. Without this check, the user would discover a
 * second wrong header only after half of the files are uploaded. Returns the opened standard input, because it can be opened
 * only once.
 *
 * `mapped` lists the columns in --map. A column may be missing from some files, because all files share the same --map, but
 * at least one file must have it. The same applies to a mapping file for all types.
 */
export async function checkHeaders(
  { files, problems }: Found,
  optionsOf: (type: UploadType) => FileOptions,
  mapped: readonly string[],
): Promise<OpenedFile | undefined> {
  const complaints = [...problems];
  const columns = new Set<string>();
  let hasUnknown = problems.length > 0;
  let standardInput: OpenedFile | undefined;
  for (const { path, type } of files) {
    try {
      const file = await openFile(path, { ...optionsOf(type), type });
      if (path === '-') standardInput = file;
      else await file.close();
      for (const column of file.header ?? []) columns.add(column);
      hasUnknown ||= file.header === undefined;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      const header = path === '-' ? undefined : await headerOf(path, { ...optionsOf(type), type });
      complaints.push(...withColumns(error.lines, header));
      for (const column of header ?? []) columns.add(column);
      hasUnknown ||= header === undefined;
    }
  }
  // Skip this check if a file contains JSON, because its objects' keys are unknown until the objects are read.
  if (!hasUnknown) {
    const complain = (what: string) => (column: string) => complainAboutAbsent(what, column, [...columns]);
    const shared = files.flatMap(({ type }) => sharedColumns(type, optionsOf(type)));
    const others = [...new Set(shared)].filter((column) => !mapped.includes(column));
    complaints.push(...mapped.flatMap(complain('--map')), ...others.flatMap(complain('the mapping file')));
  }
  if (complaints.length > 0) throw new FileError(...complaints);
  return standardInput;
}

/** Reads a file's header without checking its columns. */
export async function headerOf(path: string, options: FileOptions): Promise<readonly string[] | undefined> {
  try {
    const file = await openFile(path, { ...options, isHeaderOnly: true });
    await file.close();
    return file.header;
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}

/** Lists the file's columns after the last required field that has none. */
function withColumns(lines: readonly string[], header: readonly string[] | undefined): readonly string[] {
  const last = lines.findLastIndex((line) => line.includes('no column matches'));
  if (last < 0 || header === undefined) return lines;
  return lines.with(last, `${lines[last]}; the columns are ${quoted(header)}`);
}

function quoted(columns: readonly string[]): string {
  return columns.map((each) => `"${each}"`).join(', ');
}

/** Returns the columns that a mapping file for all types maps to a field of this type. */
function sharedColumns(type: UploadType, { map = {}, mappedColumns = [] }: FileOptions): string[] {
  const isShared = ([column, field]: readonly [string, string]) =>
    !mappedColumns.includes(column) && Object.hasOwn(schemas[type].properties, field);
  return Object.entries(map).flatMap((one) => (isShared(one) ? [one[0]] : []));
}

function complainAboutAbsent(what: string, column: string, columns: readonly string[]): string[] {
  if (columns.includes(column)) return [];
  const meant = nearest(
    column.toLowerCase(),
    columns.map((each) => each.toLowerCase()),
    3,
  );
  const found = columns.find((each) => each.toLowerCase() === meant);
  const hint = found === undefined ? `the columns are ${quoted(columns)}` : `did you mean "${found}"?`;
  return [`${what} refers to the column "${column}", which no file has; ${hint}`];
}
