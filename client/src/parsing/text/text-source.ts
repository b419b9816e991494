import type { TextBytes } from './text-bytes.ts';

/** The text of a file as it arrives. */
export interface TextSource {
  /** The next chunk, or undefined at the end. */
  next(): Promise<string | undefined>;
  /** The encoding, if it is not UTF-8 and nobody named it; known once such a byte has been read. */
  detectedEncoding(): string | undefined;
}

/** Decodes bytes that arrive in pieces: of a file on disk, or of a `Blob` in a browser. */
export function decodePieces(pieces: Pick<AsyncIterator<Uint8Array>, 'next'>, text: TextBytes): TextSource {
  return {
    detectedEncoding: () => text.detected,
    async next() {
      const { value, done } = await pieces.next();
      return done ? text.end() || undefined : text.decode(value);
    },
  };
}
