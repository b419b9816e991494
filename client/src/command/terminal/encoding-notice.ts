import type { FileChunk, OpenedFile } from '../../parsing/opened-file.ts';
import { warn } from './terminal.ts';

/** Yields a file's chunks. If the file is not UTF-8, prints a notice, because the detected encoding is only a guess. */
export async function* chunksWithNotice(file: OpenedFile): AsyncGenerator<FileChunk> {
  let isSaid = false;
  for await (const chunk of file.chunks()) {
    const encoding = file.detectedEncoding();
    if (encoding !== undefined && !isSaid) {
      isSaid = true;
      warn(
        `${file.path} is not UTF-8, so it is read as ${encoding}. If letters look wrong, specify the encoding with --encoding.`,
      );
    }
    yield chunk;
  }
}
