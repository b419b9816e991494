import type { Connection } from '../connection.ts';
import { IntakeError, unexpected } from '../errors.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';
import type { Disk, Handle, Hash } from './disk.ts';
import type { RemoteFile } from './table-list.ts';

export interface Download {
  readonly connection: Connection;
  readonly disk: Disk;
  readonly table: string;
  readonly file: RemoteFile;
  /** The path of the partial file, which may contain data from an earlier pull. */
  readonly part: string;
  readonly signal: AbortSignal;
  /** Called with the number of bytes that have arrived, or with a negative number if received bytes were discarded. */
  readonly onBytes: (bytes: number) => void;
}

const parquet = 'application/vnd.apache.parquet';
const bytesPerRead = 1024 * 1024;

/** Downloads a file or resumes a partial download, and verifies the file against the file list. */
export async function download(asked: Download): Promise<void> {
  const { file, disk, part } = asked;
  const handle = await disk.openOwn(part);
  try {
    for (let attempt = 1; ; attempt++) {
      const hash = await fetchRest(asked, handle);
      if (hash.digest('hex') === file.sha256) break;
      await handle.truncate(0);
      asked.onBytes(-file.bytes);
      if (attempt === 2)
        throw unexpected(`The file ${file.fileId} does not have the checksum that the list of files states`);
    }
    // Flush the file to disk before the log refers to it.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Requests the missing bytes until the file is complete. Returns the hash of all bytes. */
async function fetchRest(asked: Download, handle: Handle): Promise<Hash> {
  const { file, disk, signal } = asked;
  let { hash, size } = await hashOfPart(disk, handle, file.bytes);
  asked.onBytes(size);
  let failingSinceMs: number | undefined;
  let most = size;
  for (let failures = 0; size < file.bytes; ) {
    const silence = new AbortController();
    try {
      const { status, headers, body } = await ask(asked, size, AbortSignal.any([signal, silence.signal]));
      if (size > 0 && status !== 206) {
        await handle.truncate(0);
        asked.onBytes(-size);
        hash = disk.createHash('sha256');
        size = 0;
      } else if (
        size > 0 &&
        headers.get('content-range') !== `bytes ${size}-${file.bytes - 1}/${file.bytes}`
      ) {
        await body.cancel();
        throw unexpected('The answer has a different range than requested');
      }
      for await (const bytes of piecesOf(body, silence)) {
        if (size + bytes.length > file.bytes)
          throw unexpected(`The file ${file.fileId} is longer than listed`);
        await writeAll(handle, bytes, size);
        hash.update(bytes);
        size += bytes.length;
        asked.onBytes(bytes.length);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BrokenDownload)) throw error;
    }
    if (size === file.bytes) break;
    if (size > most) [failures, failingSinceMs] = [0, undefined];
    most = Math.max(most, size);
    failingSinceMs ??= Date.now();
    if (Date.now() - failingSinceMs > asked.connection.retryForMs)
      throw downloadFailed(asked.connection.origin);
    await wait(
      Math.random() * Math.min(limits.backoffMaxMs, limits.backoffFirstMs * 2 ** failures++),
      signal,
    );
  }
  return hash;
}

function ask({ connection, table, file }: Download, from: number, signal: AbortSignal) {
  // A file's ETag is its id.
  const rest = { range: `bytes=${from}-`, 'if-range': `"${file.fileId}"` };
  const path = `/v1/lake/${table}/files/${file.fileId}`;
  return connection.stream(parquet, { path, signal, headers: from > 0 ? rest : {} });
}

/** Thrown when a download is interrupted. The next request resumes the download. */
class BrokenDownload extends Error {}

async function* piecesOf(
  body: ReadableStream<Uint8Array>,
  silence: AbortController,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const timer = setTimeout(() => silence.abort(new BrokenDownload()), limits.downloadSilenceMs);
      const { done, value } = await reader
        .read()
        .catch(() => Promise.reject(new BrokenDownload()))
        .finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function hashOfPart(
  disk: Disk,
  handle: Handle,
  bytesMax: number,
): Promise<{ hash: Hash; size: number }> {
  const hash = disk.createHash('sha256');
  const { size } = await handle.stat();
  if (size > bytesMax) {
    await handle.truncate(0);
    return { hash, size: 0 };
  }
  const buffer = new Uint8Array(bytesPerRead);
  for (let at = 0; at < size; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, size - at), at);
    if (bytesRead === 0) return { hash, size: at };
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return { hash, size };
}

async function writeAll(handle: Handle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
}

function downloadFailed(origin: string): IntakeError {
  const message = `The download from ${origin} keeps breaking off. Start the pull again; it continues.`;
  return new IntakeError('connection_failed', message);
}
