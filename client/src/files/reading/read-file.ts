import type { UploadType } from '../../generated/resources.ts';
import type { ColumnPlan } from '../columns/plan-columns.ts';
import { FileError, PlacedError, withPath } from '../file-error.ts';
import { type FileFormat, formatOf, typeOf } from '../find-files.ts';
import { type OpenedText, openText } from './open-text.ts';
import type { FileChunk, FileOptions, OpenedFile } from './opened-file.ts';
import { openCsv } from './read-csv.ts';
import { readJsonArray, readNdjson } from './read-json.ts';

/**
 * Opens a file, or standard input for a hyphen, and reads its header. Throws a `FileError` that begins with the path.
 */
export async function openFile(path: string, options: FileOptions): Promise<OpenedFile> {
  try {
    return await openAny(path, options);
  } catch (error) {
    throw withPath(path, error);
  }
}

async function openAny(path: string, options: FileOptions): Promise<OpenedFile> {
  const type = options.type ?? typeOf(path);
  const format = path === '-' ? undefined : formatOf(path);
  if (format === 'parquet' || format === 'xlsx') return openedTable(path, type, format, options);
  const text = await openText(path, options.encoding);
  const opened = format === undefined ? await sniff(text) : { format, text };
  const { bytes, bytesRead, detectedEncoding, close } = text;
  const file = { path, type, format: opened.format, bytes, bytesRead, detectedEncoding, close };
  if (opened.format !== 'csv') {
    const read = opened.format === 'json' ? readJsonArray : readNdjson;
    const records = read(opened.text, type, options);
    const chunks = () => chunksOf(path, opened.format, records);
    return { ...file, ignoredColumns: [], columnOf: () => null, chunks };
  }
  const { header, separator, plan, chunks } = await openCsv(opened.text, type, options).catch(
    async (error) => {
      await close();
      throw error;
    },
  );
  return { ...file, header, separator, ...columnsOf(plan), chunks: () => chunksOf(path, 'csv', chunks()) };
}

/** Opens a file with columns that is not a text. */
async function openedTable(
  path: string,
  type: UploadType,
  format: 'parquet' | 'xlsx',
  options: FileOptions,
): Promise<OpenedFile> {
  if (/\.(gz|zst)$/i.test(path))
    throw new FileError(`a ${format} file is compressed already; unpack the file first`);
  // Loaded on demand: the decompressors of Parquet take a tenth of a second to start.
  const { plan, chunks, ...opened } =
    format === 'parquet'
      ? await (await import('./read-parquet.ts')).openParquet(path, type, options)
      : await (await import('./read-xlsx.ts')).openXlsx(path, type, options);
  const file = { path, type, format, detectedEncoding: () => undefined, ...opened };
  return { ...file, ...columnsOf(plan), chunks: () => chunksOf(path, format, chunks()) };
}

function columnsOf({ columns, key, ignored }: ColumnPlan) {
  const names = new Map(columns.map(({ field, column }) => [field, column]));
  if (key !== undefined) names.set(key.field, key.name);
  return { ignoredColumns: ignored, columnOf: (field: string) => names.get(field) ?? null };
}

async function* chunksOf(
  path: string,
  format: FileFormat,
  chunks: AsyncIterable<FileChunk>,
): AsyncGenerator<FileChunk> {
  let last = 0;
  try {
    for await (const chunk of chunks) {
      last = Math.max(last, chunk.records.at(-1)?.line ?? 0, chunk.failures.at(-1)?.line ?? 0);
      yield chunk;
    }
  } catch (error) {
    throw withPath(path, last > 0 ? withPlace(format, last, error) : error);
  }
}

function withPlace(format: FileFormat, last: number, error: unknown): unknown {
  if (!(error instanceof FileError) || error instanceof PlacedError) return error;
  const what = format === 'csv' || format === 'ndjson' ? 'line' : 'record';
  return new FileError(`after ${what} ${last}: ${error.message}`);
}

/** Standard input has no name, so its format is detected by its first characters. */
async function sniff(text: OpenedText): Promise<{ format: FileFormat; text: OpenedText }> {
  let first: string | undefined = await text.next();
  const start = first?.trimStart() ?? '';
  if (start.startsWith('PAR1'))
    throw new FileError(
      'Parquet is read from its end, so it cannot be read from here; save it as a .parquet file',
    );
  const next = async () => {
    if (first === undefined) return text.next();
    const piece = first;
    first = undefined;
    return piece;
  };
  return { format: formatOfText(start), text: { ...text, next } };
}

function formatOfText(start: string): FileFormat {
  if (start.startsWith('[')) return 'json';
  if (!start.startsWith('{')) return 'csv';
  try {
    return Array.isArray(JSON.parse(start.split('\n', 1)[0] as string).records) ? 'json' : 'ndjson';
  } catch {
    return 'json';
  }
}
