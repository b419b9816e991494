import { writeSync } from 'node:fs';
import { FileError } from '../parsing/file-error.ts';

/** A file beside the uploaded one cannot be written, or not any further. */
export class OutputError extends FileError {}

/** Writes a whole text: when a disk fills up, a write stores only a part, and only its return value says so. */
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
  ENOSPC: 'the disk is full; make room',
  EDQUOT: 'your share of the disk is full; make room',
  EFBIG: 'it would be larger than files may be here; raise the limit',
};

export function notWritten(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  return new OutputError(
    `${path} cannot be written: ${reasons[code] ?? `${code}; check that the folder may be written to`}`,
  );
}
