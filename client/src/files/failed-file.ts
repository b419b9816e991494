import {
  closeSync,
  existsSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename } from 'node:path';
import { reasonColumn } from '../parsing/columns/plan-columns.ts';
import { FileError } from '../parsing/file-error.ts';
import type { OpenedFile } from '../parsing/opened-file.ts';
import { FailedCsv } from '../parsing/text/failed-csv.ts';
import { notWritten, writeWhole } from './write-whole.ts';

export interface FailedRecord {
  readonly line: number;
  /** The cells of the original CSV row. */
  readonly cells?: readonly string[] | undefined;
  /** The record that was sent or would have been sent, or its text if it could not be read. */
  readonly record?: unknown;
  readonly reason: string;
}

/**
 * Writes failed records next to the file, so that they can be corrected and uploaded again. The records are written as
 * NDJSON, and also as CSV if they came from CSV. The last property or column is the reason, which is ignored when the file
 * is uploaded again. The files of an earlier upload are kept: shops.csv.failed.csv becomes shops.csv.1.failed.csv.
 */
export class FailedFile {
  readonly #lines: FailedCsv;
  readonly #ndjson: Output;
  readonly #csv: Output | undefined;

  /**
   * Opens the files. `written` is the result of the last `flush` before an interruption, and each file continues from the
   * size that it had at that time. Its folder may be given in another way now, so only the file's name counts.
   */
  constructor(file: OpenedFile, written: Readonly<Record<string, number>> = {}, isDryRun = false) {
    // A dry run must not overwrite the files from a real upload.
    const path = (file.path === '-' ? file.type : file.path) + (isDryRun ? '.dry-run' : '');
    const { header = [], separator } = file;
    const sizes = new Map(Object.entries(written).map(([name, bytes]) => [basename(name), bytes]));
    const other = [...sizes.keys()].find((name) => !name.startsWith(`${basename(path)}.failed.`));
    if (other !== undefined)
      throw new FileError(
        `The failed records of ${path} are in ${other}, because its upload began with another name. Resume with that name`,
      );
    this.#lines = new FailedCsv(header, separator);
    const outputOf = (extension: string, firstLine: string) => {
      const name = `${path}.failed.${extension}`;
      return new Output(name, firstLine, sizes, (number) =>
        isDryRun ? undefined : `${path}.${number}.failed.${extension}`,
      );
    };
    this.#ndjson = outputOf('ndjson', '');
    if (separator !== undefined) this.#csv = outputOf('csv', this.#lines.headerLine());
  }

  add({ line, cells, record, reason }: FailedRecord): void {
    this.#ndjson.write(`${JSON.stringify({ ...objectOf(line, record), [reasonColumn]: reason })}\n`);
    if (cells !== undefined) this.#csv?.write(this.#lines.line(cells, reason));
  }

  /**
   * Returns once everything that was added is on disk. The result contains the size of each file in bytes, and is empty if
   * nothing has failed.
   */
  flush(): Record<string, number> {
    const outputs = [this.#ndjson, this.#csv].filter((output) => output !== undefined);
    return Object.fromEntries(
      outputs.filter((output) => output.flush() > 0).map(({ path, bytes }) => [path, bytes]),
    );
  }

  /** Flushes, and returns the files' paths. The list is empty if nothing has failed. */
  close(): readonly string[] {
    const paths = Object.keys(this.flush());
    this.#ndjson.close();
    this.#csv?.close();
    return paths;
  }
}

/** Returns the record, or an object with the line number and the text if the text could not be read as a record. */
function objectOf(line: number, record: unknown): object {
  return typeof record === 'object' && record !== null ? record : { line, text: record };
}

/** Gives the file the first name that is free, or removes it. */
function moveAway(path: string, nameOf: (number: number) => string | undefined = () => undefined): void {
  try {
    let number = 1;
    let name = nameOf(number);
    while (name !== undefined && existsSync(name)) name = nameOf(++number);
    if (name === undefined) rmSync(path, { force: true });
    else renameSync(path, name);
  } catch (error) {
    throw notWritten(path, error);
  }
}

const bufferCharactersMax = 65_536;

/**
 * A file that is created when its first line is written. Writes are synchronous, because failures may arrive faster than the
 * disk can write, and a stream would buffer them in memory.
 */
class Output {
  readonly path: string;
  /** The file's length, not counting buffered data. */
  bytes: number;
  #bytesOnDisk: number;
  #descriptor: number | undefined;
  #buffer: string;

  /** `nameOf` returns the name under which the failures of an earlier upload are kept, or undefined if they are not. */
  constructor(
    path: string,
    header: string,
    sizes: ReadonlyMap<string, number>,
    nameOf: (number: number) => string | undefined,
  ) {
    this.path = path;
    const found = statSync(path, { throwIfNoEntry: false })?.size;
    // An empty file is how the user says that the failed records are lost.
    this.bytes = found === 0 ? 0 : (sizes.get(basename(path)) ?? 0);
    this.#bytesOnDisk = this.bytes;
    if ((found ?? 0) < this.bytes)
      throw new FileError(
        `${path} was moved or has changed since the upload was interrupted; put it back and use --resume again. If it is lost, create an empty file with this name: --resume then continues without the records that failed before`,
      );
    this.#buffer = this.bytes === 0 ? header : '';
    // Failures of an earlier upload, or those written after the last flush, would look like failures of this one.
    if (this.bytes === 0) moveAway(path, found ? nameOf : undefined);
    else this.#descriptor = this.#open();
  }

  write(line: string): void {
    this.#descriptor ??= this.#open();
    this.#buffer += line;
    if (this.#buffer.length >= bufferCharactersMax) this.#empty();
  }

  flush(): number {
    this.#empty();
    if (this.#descriptor !== undefined && this.bytes > this.#bytesOnDisk) this.#sync(this.#descriptor);
    return this.bytes;
  }

  #empty(): void {
    if (this.#descriptor === undefined || this.#buffer === '') return;
    this.bytes += writeWhole(this.#descriptor, this.path, this.#buffer, this.bytes);
    this.#buffer = '';
  }

  #sync(descriptor: number): void {
    try {
      fdatasyncSync(descriptor);
    } catch (error) {
      throw notWritten(this.path, error);
    }
    this.#bytesOnDisk = this.bytes;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #open(): number {
    try {
      // Make the file private, because it contains the same data as the uploaded file, possibly including personal data.
      const descriptor = openSync(this.path, this.bytes === 0 ? 'w' : 'r+', 0o600);
      ftruncateSync(descriptor, this.bytes);
      return descriptor;
    } catch (error) {
      throw notWritten(this.path, error);
    }
  }
}
