import { resources, type UploadType } from '../../../../../client/src/generated/resources.ts';
import { schemas } from '../../../../../client/src/generated/schemas.ts';
import { planColumns } from '../../../../../client/src/parsing/columns/plan-columns.ts';
import { suggestColumns, suggestType } from '../../../../../client/src/parsing/columns/suggest-columns.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import type { FileFormat } from '../../../../../client/src/parsing/file-name.ts';
import type { FileOptions, FileRecord } from '../../../../../client/src/parsing/opened-file.ts';
import { formats } from '../../../../../client/src/parsing/values/formats.ts';
import { openBlob } from './open-blob.ts';
import { inScreenWords } from './screen-words.ts';

const rowsShown = 5;
const recordsSampled = 100;

/** A file before its record type is known. */
export interface DescribedFile {
  readonly file: File;
  readonly format: FileFormat;
  /** The file's columns, or the keys of its first JSON objects. */
  readonly header: readonly string[];
  readonly separator: string | undefined;
  readonly firstRows: readonly { readonly line: number; readonly cells: readonly string[] }[];
  /** The encoding that the user chose. */
  readonly encoding: string | undefined;
  readonly detectedEncoding: string | undefined;
  readonly suggestedType: UploadType | undefined;
  /** The sheets with data that are not read. */
  readonly otherSheets: readonly string[];
}

/** Describes a file after reading only its start. */
export async function describeFile(file: File, encoding: string | undefined): Promise<DescribedFile> {
  // The type does not matter, because the cells are not converted.
  const opened = await openBlob(file, 'shops', { isPreview: true, encoding });
  const records: FileRecord[] = [];
  try {
    let read = 0;
    for await (const chunk of opened.chunks()) {
      records.push(...chunk.records);
      read += chunk.records.length + chunk.failures.length;
      if (read >= recordsSampled) break;
    }
  } finally {
    await opened.close();
  }
  const sampled = records.slice(0, recordsSampled);
  const members = new Set(sampled.flatMap(({ record }) => Object.keys(record)));
  const header = opened.header ?? [...members];
  if (header.length === 0) throw new FileError('The file has no records that can be read. Check its format.');
  return {
    file,
    header,
    format: opened.format,
    separator: opened.separator,
    firstRows: sampled.slice(0, rowsShown).map(({ line, cells, record }) => ({
      line,
      cells: cells ?? header.map((member, at) => textOf(record[opened.header ? String(at) : member])),
    })),
    encoding,
    detectedEncoding: opened.detectedEncoding(),
    suggestedType: suggestType(file.name, header),
    otherSheets: opened.otherSheets ?? [],
  };
}

/** Returns whether the format is JSON, which has named values but no header. */
export function isJson(format: FileFormat): boolean {
  return format === 'json' || format === 'ndjson';
}

/** Returns the unit in which the file's records are counted. */
export function placeName(format: FileFormat): 'Line' | 'Row' | 'Record' {
  if (format === 'csv' || format === 'ndjson') return 'Line';
  return format === 'xlsx' ? 'Row' : 'Record';
}

/** Returns a JSON value as cell text. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The settings for reading the file, which the user chooses on the screen. */
export interface Settings extends FileOptions {
  readonly type: UploadType;
  /** The field that each column is mapped to. A column that is mapped to '' is skipped. */
  readonly map: Readonly<Record<string, string>>;
}

/** Returns the initial settings, with the same suggestions as `intake map`. */
export function suggestSettings(described: DescribedFile, type: UploadType): Settings {
  const { header, firstRows, format, encoding } = described;
  const map = suggestColumns(type, header);
  const idColumn = header.find((column) => map[column] === resources[type].idField);
  const firstId = idColumn && firstRows[0]?.cells[header.indexOf(idColumn)]?.trim();
  const derives = !isJson(format) && firstId && !formats.uuid.test(firstId);
  const isMerged = type !== 'interactions' || undefined;
  return { type, map, encoding, idFrom: derives ? [idColumn] : undefined, isMerged };
}

/** Returns the fields that no column is sent as, whose stored values are kept. */
export function absentFields({ type, map, idFrom, isMerged }: Settings): readonly string[] {
  const sent = new Set(Object.values(map));
  if (idFrom !== undefined) sent.add(resources[type].idField);
  return isMerged ? Object.keys(schemas[type].properties).filter((field) => !sent.has(field)) : [];
}

/** Returns the problems with the settings, in the screen's terms. */
export function complaintsAbout({ header, format }: DescribedFile, settings: Settings): readonly string[] {
  const { type, map } = settings;
  if (isJson(format)) {
    const fields = header.map((member) => map[member]);
    const { idField } = resources[type];
    return (settings.isMerged ? [idField] : schemas[type].required)
      .filter((field) => !fields.includes(field))
      .map((field) => `no member matches ${field}, which ${type} require; choose it`);
  }
  try {
    planColumns(type, header, settings);
    return [];
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return error.lines.map(inScreenWords);
  }
}
