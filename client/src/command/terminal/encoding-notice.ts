import type { FileChunk, OpenedFile } from '../../parsing/opened-file.ts';
import { warn } from './terminal.ts';

/** The chunks of a file. Says so when it turns out not to be UTF-8, because nothing proves which encoding it is. */
export async function* chunksWithNotice(file: OpenedFile): AsyncGenerator<FileChunk> {
  let isSaid = false;
  for await (const chunk of file.chunks()) {
    const encoding = file.detectedEncoding();
    if (encoding !== undefined && !isSaid) {
      isSaid = true;
      warn(
        `${file.path} is not UTF-8, so it is read as ${encoding}. If its letters come out wrong, name its encoding with --encoding.`,
      );
    }
    yield chunk;
  }
}
