import { type FileHandle, open } from 'node:fs/promises';
import { compressors } from 'hyparquet-compressors';
import type { UploadType } from '../../generated/resources.ts';
import { FileError } from '../../parsing/file-error.ts';
import type { FileOptions, OpenedTable } from '../../parsing/opened-file.ts';
import { openParquetBytes } from '../../parsing/tables/parquet.ts';
import { watchFile } from './watch-file.ts';

export async function openParquet(
  path: string,
  type: UploadType,
  options: FileOptions,
): Promise<OpenedTable> {
  const unchanged = await watchFile(path);
  const byteLength = unchanged.bytes;
  const handle = await open(path);
  const slice = (start: number, end = byteLength) => readRange(handle, start, end);
  try {
    const opened = await openParquetBytes({ byteLength, slice, compressors }, type, options);
    return {
      ...opened,
      close: () => handle.close(),
      async *chunks() {
        try {
          for await (const chunk of opened.chunks()) {
            await unchanged.check(false);
            yield chunk;
          }
          await unchanged.check(true);
        } finally {
          await handle.close();
        }
      },
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readRange(handle: FileHandle, start: number, end: number): Promise<ArrayBuffer> {
  const bytes = new Uint8Array(end - start);
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
    if (bytesRead === 0) throw new FileError('it is cut off; write it again');
    done += bytesRead;
  }
  return bytes.buffer;
}
