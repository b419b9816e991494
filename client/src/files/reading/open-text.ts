import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import type { Readable, Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { FileError } from '../../parsing/file-error.ts';
import type { BytesRead, FileOptions } from '../../parsing/opened-file.ts';
import { TextBytes } from '../../parsing/text/text-bytes.ts';
import { decodePieces, type TextSource } from '../../parsing/text/text-source.ts';
import { watchFile } from './watch-file.ts';

/**
 * The number of bytes per read. Larger chunks outlive the young generation: with 256 KiB, reading takes twice as much memory
 * and a third more CPU time.
 */
const readBytes = 32_768;

/** A file's decompressed text, which is read in chunks. */
export interface OpenedText extends TextSource {
  /** The file size on disk, or undefined for standard input. */
  readonly bytes: number | undefined;
  bytesRead(): number;
  hashRead(): BytesRead;
  /** Closes the text if it was not read to its end. */
  close(): Promise<void>;
}

/** Opens a file, or standard input if the path is `-`. Detects the compression from the first bytes. */
export async function openText(
  path: string,
  { encoding, isFailedFile, isHashed = false }: FileOptions = {},
): Promise<OpenedText> {
  // A program that corrects the failed records may save them in the encoding of the original file.
  const text = new TextBytes(encoding, isFailedFile);
  const unchanged = path === '-' ? undefined : await watchFile(path);
  const bytes = unchanged?.bytes;
  // What is added to the file while it is read is not read.
  const source =
    bytes === undefined
      ? process.stdin
      : createReadStream(path, { highWaterMark: readBytes, end: Math.max(bytes - 1, 0) });
  const decompress = decompressorOf(await firstBytes(source));
  const hash = createHash('sha256');
  let bytesHashed = 0;
  const chunks = isHashed
    ? eachPassed(source, (chunk) => {
        hash.update(chunk);
        bytesHashed += chunk.length;
      })
    : source;
  const pieces: AsyncIterator<Buffer> =
    decompress === undefined ? chunks[Symbol.asyncIterator]() : decompressed(chunks, decompress);
  const next = async () => {
    const piece = await pieces.next().catch(explain);
    await unchanged?.check(piece.done ?? false);
    return piece;
  };
  return {
    ...decodePieces({ next }, text),
    bytes,
    bytesRead: () => source.bytesRead,
    hashRead: () => ({ bytes: bytesHashed, sha256: hash.copy().digest('hex') }),
    async close() {
      source.destroy();
      decompress?.destroy();
    },
  };
}

async function* eachPassed(
  chunks: AsyncIterable<Buffer>,
  take: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    take(chunk);
    yield chunk;
  }
}

async function firstBytes(source: Readable): Promise<Buffer> {
  await once(source, 'readable').catch(explain);
  const first: Buffer | null = source.read();
  if (first === null) throw new FileError('it is empty; there is nothing to upload');
  source.unshift(first);
  return first;
}

function decompressorOf(first: Buffer): (Transform & Zlib) | undefined {
  if (startsWith(first, [0x1f, 0x8b])) return createGunzip({ chunkSize: readBytes });
  if (startsWith(first, [0x28, 0xb5, 0x2f, 0xfd])) return createZstdDecompress({ chunkSize: readBytes });
  if (startsWith(first, [0x50, 0x4b, 0x03, 0x04]))
    throw new FileError('it is a ZIP archive; unpack it, or, if it is a spreadsheet, name it .xlsx');
  const other = others.find(({ start }) => startsWith(first, start));
  if (other) throw new FileError(`it is ${other.what}, not CSV or NDJSON; ${other.advice}`);
  return undefined;
}

/** The first bytes of files that people upload by mistake. Read as CSV, they would only lack every column. */
const others = [
  { start: [0x25, 0x50, 0x44, 0x46], what: 'a PDF file', advice: 'export the records as CSV' },
  { start: [0x89, 0x50, 0x4e, 0x47], what: 'a PNG image', advice: 'export the records as CSV' },
  { start: [0xff, 0xd8, 0xff], what: 'a JPEG image', advice: 'export the records as CSV' },
  { start: [0xd0, 0xcf, 0x11, 0xe0], what: 'an old Excel file', advice: 'save it as .xlsx or CSV' },
];

/**
 * Yields everything that the decompressor produces. A piped stream would drop its buffer if the data were truncated. A
 * decompressor ends at bytes that do not continue the data, and then takes nothing more. Some programs pad with zeros.
 */
async function* decompressed(
  source: AsyncIterable<Buffer>,
  decompress: Transform & Zlib,
): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let given = 0;
  let isEnded = false;
  decompress.on('data', (piece: Buffer) => pieces.push(piece));
  const ended = once(decompress, 'end').then(() => {
    isEnded = true;
  });
  const failed = once(decompress, 'error').then(([error]) => Promise.reject(error));
  // Avoid unhandled rejections. `feed` reports the error.
  failed.catch(() => {});
  ended.catch(() => {});
  const feed = async (give: (done: () => void) => void) => {
    const work = [new Promise<void>(give), ended, failed];
    const error: unknown = await Promise.race(work).catch((reason) => reason);
    const found = pieces;
    pieces = [];
    return { found, error };
  };
  for await (const chunk of source) {
    if (isEnded) refuseUnlessZeros(chunk);
    else {
      given += chunk.length;
      const { found, error } = await feed((done) => decompress.write(chunk, () => done()));
      yield* found;
      if (error !== undefined) throw error;
      if (isEnded) refuseUnlessZeros(chunk.subarray(chunk.length - (given - decompress.bytesWritten)));
    }
  }
  if (isEnded) return;
  const { found, error } = await feed((done) => decompress.once('end', done).end());
  yield* found;
  if (error !== undefined) throw error;
}

/** What a decompressor has taken so far. */
interface Zlib {
  readonly bytesWritten: number;
}

function refuseUnlessZeros(rest: Buffer): void {
  if (rest.some((byte) => byte !== 0))
    throw new FileError('it has other data after its compressed data; compress it again');
}

function startsWith(bytes: Buffer, start: readonly number[]): boolean {
  return start.every((byte, at) => bytes[at] === byte);
}

function explain(error: NodeJS.ErrnoException): never {
  if (error instanceof FileError) throw error;
  if (error.code?.startsWith('Z'))
    throw new FileError(
      `it cannot be decompressed (${error.message}); it may be cut short, so copy it again`,
    );
  throw new FileError(
    `it cannot be read (${error.message}); check that it still exists and that you may read it`,
  );
}
