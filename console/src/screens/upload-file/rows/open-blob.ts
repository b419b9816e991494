import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import { type FileFormat, formatOfName } from '../../../../../client/src/parsing/file-name.ts';
import { columnsOf, openRecords } from '../../../../../client/src/parsing/open-records.ts';
import type { FileOptions, OpenedRecords } from '../../../../../client/src/parsing/opened-file.ts';
import { TextBytes } from '../../../../../client/src/parsing/text/text-bytes.ts';
import { decodePieces } from '../../../../../client/src/parsing/text/text-source.ts';

export interface OpenedBlob extends OpenedRecords {
  /** Returns the number of bytes read so far, for showing the progress. */
  bytesRead(): number;
  /** Closes the file if it was not read to its end. */
  close(): Promise<void>;
}

/** Opens a file that the user chose in the browser. The file is read as a stream rather than loaded into memory. */
export async function openBlob(file: File, type: UploadType, options: FileOptions): Promise<OpenedBlob> {
  const start = new Uint8Array(await file.slice(0, 4).arrayBuffer().catch(unreadable));
  const format = formatOf(file.name, start);
  if (format === 'xlsx' || format === 'parquet') return openTable(file, type, format, options);
  const decoder = new TextBytes(options.encoding);
  let bytesRead = 0;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(piece, controller) {
      bytesRead += piece.length;
      controller.enqueue(piece);
    },
  });
  const isGzip = startsWith(start, [0x1f, 0x8b]);
  const plain = file.stream().pipeThrough(counted);
  const reader = (isGzip ? plain.pipeThrough(new DecompressionStream('gzip')) : plain).getReader();
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const { value, done } = await reader.read().catch(isGzip ? cutShort : unreadable);
    return done ? { done, value: undefined } : { done, value };
  };
  const close = () => reader.cancel().catch(() => {});
  try {
    const records = await openRecords(decodePieces({ next }, decoder), format, type, options);
    return { ...records, bytesRead: () => bytesRead, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens a spreadsheet or Parquet file, and loads the code for it on demand. */
async function openTable(
  file: File,
  type: UploadType,
  format: 'xlsx' | 'parquet',
  options: FileOptions,
): Promise<OpenedBlob> {
  const { plan, ...opened } =
    format === 'parquet'
      ? await (await import('../tables/open-parquet.ts')).openParquetFile(file, type, options)
      : await (await import('../tables/open-sheet.ts')).openSheetFile(file, type, options);
  return { type, format, detectedEncoding: () => undefined, ...opened, ...columnsOf(plan) };
}

function formatOf(name: string, start: Uint8Array): FileFormat | undefined {
  if (start.length === 0) throw new FileError('The file is empty.');
  const format = formatOfName(name);
  if (startsWith(start, [0x50, 0x41, 0x52, 0x31])) return 'parquet';
  if (startsWith(start, [0x50, 0x4b, 0x03, 0x04])) {
    if (format === 'xlsx') return format;
    throw new FileError('The file is a ZIP archive. Unpack it, or name it .xlsx if it is a spreadsheet.');
  }
  if (startsWith(start, [0x28, 0xb5, 0x2f, 0xfd]))
    throw new FileError('Zstandard cannot be read here. Unpack the file, or compress it with gzip instead.');
  return format;
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return start.every((byte, at) => bytes[at] === byte);
}

export function unreadable(): never {
  throw new FileError('The browser cannot read the file. If it was changed or moved, choose it again.');
}

function cutShort(): never {
  throw new FileError(
    'The file cannot be decompressed. It may be cut short, so copy it again, or consist of several parts, so unpack it first.',
  );
}
