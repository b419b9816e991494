import { gunzipSync } from 'fflate/browser';
import { decompress } from 'fzstd';
import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import type { FileOptions, OpenedTable } from '../../../../../client/src/parsing/opened-file.ts';
import { openParquetBytes } from '../../../../../client/src/parsing/tables/parquet.ts';

/**
 * hyparquet itself reads Snappy. The package that the command uses for other formats starts a WebAssembly Snappy decoder as
 * soon as it is loaded, which the content security policy forbids. Brotli alone would double the bundle size.
 */
const compressors = {
  GZIP: (input: Uint8Array, length: number) => gunzipSync(input, { out: new Uint8Array(length) }),
  ZSTD: (input: Uint8Array) => decompress(input),
  BROTLI: () => refuse('Brotli'),
  LZ4: () => refuse('LZ4'),
  LZ4_RAW: () => refuse('LZ4'),
};

function refuse(name: string): never {
  throw new FileError(
    `it is compressed with ${name}, which is not read here; write it with Snappy, gzip or Zstandard, or use the intake command`,
  );
}

export async function openParquetFile(
  file: File,
  type: UploadType,
  options: FileOptions,
): Promise<OpenedTable> {
  const slice = (start: number, end = file.size) => file.slice(start, end).arrayBuffer();
  const opened = await openParquetBytes({ byteLength: file.size, slice, compressors }, type, options);
  return { ...opened, close: async () => {} };
}
