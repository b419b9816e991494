import type { UploadType } from '../../generated/resources.ts';
import { FileError, PlacedError, withPath } from '../../parsing/file-error.ts';
import type { FileFormat } from '../../parsing/file-name.ts';
import { columnsOf, openRecords } from '../../parsing/open-records.ts';
import type { FileChunk, FileOptions, OpenedFile } from '../../parsing/opened-file.ts';
import { cutOff, lastLineCutOff } from '../../parsing/text/csv-parser.ts';
import { failedRecords, formatOf, typeOf } from '../find-files.ts';
import { openText } from './open-text.ts';

/**
 * Opens a file, or standard input if the path is `-`, and reads its header. Throws a `FileError` whose message starts with
 * the path.
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
  const isFailedFile = failedRecords.test(path);
  const text = await openText(path, { ...options, isFailedFile });
  const { bytes, bytesRead, hashRead, close } = text;
  const records = await openRecords(text, format, type, { ...options, isFailedFile }).catch(async (error) => {
    await close();
    throw error;
  });
  const chunks = () => chunksOf(path, records.format, records.chunks());
  const hash = options.isHashed ? { hashRead } : {};
  return { ...records, path, bytes, bytesRead, ...hash, close, chunks };
}

/** Opens a spreadsheet or Parquet file. */
async function openedTable(
  path: string,
  type: UploadType,
  format: 'parquet' | 'xlsx',
  options: FileOptions,
): Promise<OpenedFile> {
  if (/\.(gz|zst)$/i.test(path))
    throw new FileError(`a ${format} file is compressed already; unpack the file first`);
  // These modules are imported on demand, because the Parquet decompressors take a tenth of a second to start.
  const { plan, chunks, ...opened } =
    format === 'parquet'
      ? await (await import('./read-parquet.ts')).openParquet(path, type, options)
      : await (await import('./read-xlsx.ts')).openXlsx(path, type, options);
  const file = { path, type, format, detectedEncoding: () => undefined, ...opened };
  return { ...file, ...columnsOf(plan), chunks: () => chunksOf(path, format, chunks()) };
}

async function* chunksOf(
  path: string,
  format: FileFormat,
  chunks: AsyncIterable<FileChunk>,
): AsyncGenerator<FileChunk> {
  let last = 0;
  try {
    for await (const chunk of chunks) {
      const broken = chunk.failures.find(({ problems }) => problems.some(({ code }) => code === cutOff));
      const end = broken?.line ?? chunk.openLine;
      const records = chunk.records.filter(({ line }) => line !== end);
      const failures = chunk.failures.filter(({ line }) => line !== end);
      last = Math.max(last, records.at(-1)?.line ?? 0, failures.at(-1)?.line ?? 0);
      yield { records, failures };
      // Nobody looks at what a nightly job sends, so a value that may be cut off is not sent.
      if (end !== undefined) throw new PlacedError(`line ${end} ${lastLineCutOff}`);
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
