import type { TextBytes } from './text-bytes.ts';

/** A file's text, which is read in chunks. */
export interface TextSource {
  /** Returns the next chunk, or undefined at the end. */
  next(): Promise<string | undefined>;
  /**
   * Returns the detected encoding if it is not UTF-8 and was not specified. It is unknown until a non-ASCII byte has been
   * read.
   */
  detectedEncoding(): string | undefined;
}

/** Decodes bytes that arrive in pieces, either from a file on disk or from a `Blob` in a browser. */
export function decodePieces(pieces: Pick<AsyncIterator<Uint8Array>, 'next'>, text: TextBytes): TextSource {
  return {
    detectedEncoding: () => text.detected,
    async next() {
      const { value, done } = await pieces.next();
      return done ? text.end() || undefined : text.decode(value);
    },
  };
}
