import { writeSync } from 'node:fs';
import { FileError } from '../parsing/file-error.ts';

/** Thrown if a file next to the uploaded file could not be written completely. */
export class OutputError extends FileError {}

/**
 * Writes the whole text. When the disk is full, a write stores only part of its data, and only the write's return value
 * shows that.
 */
export function writeWhole(descriptor: number, path: string, text: string, position: number): number {
  const bytes = Buffer.from(text);
  let done = 0;
  try {
    while (done < bytes.length)
      done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
  } catch (error) {
    throw notWritten(path, error);
  }
  return done;
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'your disk quota is used up; free some space',
  EFBIG: 'it would exceed the maximum file size; raise the limit',
};

export function notWritten(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  return new OutputError(
    `${path} cannot be written: ${reasons[code] ?? `${code}; check that the folder may be written to`}`,
  );
}
