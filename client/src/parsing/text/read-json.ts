import type { UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { reasonColumn } from '../columns/plan-columns.ts';
import { failedOptions, objectConverter, objectKeysOf } from '../columns/plan-objects.ts';
import { FileError } from '../file-error.ts';
import type { FileChunk, FileFailure, FileOptions, FileRecord } from '../opened-file.ts';
import { inexact, isExact } from '../values/exact-number.ts';
import { cutOff, lastLineCutOff, notUtf8, replacement } from './csv-parser.ts';
import { JsonScanner, recordCharactersMax } from './json-scanner.ts';
import type { TextSource } from './text-source.ts';

/** Reads one record per line. */
export async function* readNdjson(text: TextSource, reader: JsonReader): AsyncGenerator<FileChunk> {
  let rest = '';
  let line = 0;
  let isInLongLine = false;
  for (;;) {
    const piece = await text.next();
    if (piece === undefined && isCutOff(rest)) {
      yield reader.takeChunk();
      reader.fail(line + 1, cutOff, lastLineCutOff, rest);
      yield reader.takeChunk();
      return;
    }
    const lines = (rest + (piece ?? '\n')).split('\n');
    rest = lines.pop() as string;
    for (const each of lines) {
      line++;
      if (isInLongLine) isInLongLine = false;
      else if (each.trim() !== '') reader.read(each, line);
    }
    if (rest.length > recordCharactersMax) {
      if (!isInLongLine) reader.fail(line + 1, 'record_too_large', tooLarge);
      isInLongLine = true;
      rest = '';
    }
    if (piece === undefined) reader.end();
    yield reader.takeChunk();
    if (piece === undefined) return;
  }
}

/** Returns whether the last line, which has no line break, is not a complete record. */
function isCutOff(line: string): boolean {
  try {
    return line.trim() !== '' && JSON.parse(line) === undefined;
  } catch {
    return true;
  }
}

const tooLarge = `is longer than ${recordCharactersMax} characters; check that each record is on its own line`;

/** Reads an array of records, or an object with a `records` array. */
export async function* readJsonArray(text: TextSource, reader: JsonReader): AsyncGenerator<FileChunk> {
  const scanner = new JsonScanner();
  let number = 0;
  for (;;) {
    const piece = await text.next();
    const found: string[] = [];
    let broken: FileError | undefined;
    try {
      scanner.push(piece ?? '', piece === undefined, found);
    } catch (error) {
      // Records that come before the syntax error are still used.
      if (!(error instanceof FileError)) throw error;
      broken = error;
    }
    for (const each of found) reader.read(each, ++number);
    if (piece === undefined) reader.end();
    yield reader.takeChunk();
    if (broken !== undefined) throw broken;
    if (piece === undefined) return;
  }
}

class InexactError extends Error {}

const longNumber = /\d[\d.]{15}/;

/** Parses a record. If it has a number with too many digits, which `JSON.parse` would round, throws an error. */
function parsed(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text);
  // The third argument is the number's text. Old browsers lack it.
  return JSON.parse(text, (key: string, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value === 'number' && context?.source !== undefined && !isExact(context.source, value))
      throw new InexactError(`${key} ${inexact.message}`);
    return value;
  });
}

/** How the objects of a file are converted. */
function formOf(type: UploadType, options: FileOptions) {
  return { convert: objectConverter(type, options), keysOf: objectKeysOf(type, options) };
}

/** Reads the texts of records, and collects the results. */
export class JsonReader {
  readonly #form: ReturnType<typeof formOf>;
  readonly #failedForm: ReturnType<typeof formOf>;
  /** The fields that no record has had yet, if their stored values are kept. */
  readonly #unseen: Set<string>;
  #isEnded = false;
  #toSkip: number;
  #records: FileRecord[] = [];
  #failures: FileFailure[] = [];

  constructor(type: UploadType, options: FileOptions) {
    this.#failedForm = formOf(type, failedOptions(options));
    this.#form = options.isFailedFile ? this.#failedForm : formOf(type, options);
    this.#unseen = new Set(options.isMerged ? Object.keys(schemas[type].properties) : []);
    this.#toSkip = options.skipRecords ?? 0;
  }

  absentFields(): readonly string[] {
    return this.#isEnded ? [...this.#unseen] : [];
  }

  /** Must be called after the last record. */
  end(): void {
    this.#isEnded = true;
  }

  read(text: string, line: number): void {
    this.#readOne(text, line);
    if (this.#toSkip === 0) return;
    // Records that an earlier run has sent are read only to know which fields they have.
    this.#toSkip--;
    this.takeChunk();
  }

  #readOne(text: string, line: number): void {
    if (text.includes(replacement)) {
      this.#add(line, 'invalid_characters', notUtf8, text);
      return;
    }
    let value: unknown;
    try {
      value = parsed(text);
    } catch (error) {
      if (error instanceof InexactError) this.#add(line, inexact.code, error.message, text);
      else this.#add(line, 'malformed_json', `is not JSON: ${(error as Error).message}`, text);
      return;
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#add(line, 'not_an_object', 'must be a JSON object with the fields of its type', text);
      return;
    }
    const object = value as Record<string, unknown>;
    const { convert, keysOf } = reasonColumn in object ? this.#failedForm : this.#form;
    const converted = convert(object);
    const found = converted.record ?? converted.converted;
    for (const field of this.#unseen) if (found[field] !== undefined) this.#unseen.delete(field);
    if (converted.problems !== undefined) this.#failures.push({ line, record: value, ...converted });
    else this.#records.push({ line, record: converted.record, keys: keysOf(object) });
  }

  /** Reports a failed record, with its text if that is kept. */
  fail(line: number, code: string, message: string, text?: string): void {
    if (this.#toSkip > 0) this.#toSkip--;
    else this.#add(line, code, message, text);
  }

  #add(line: number, code: string, message: string, record: unknown): void {
    this.#failures.push({ line, problems: [{ column: null, field: null, code, message }], record });
  }

  takeChunk(): FileChunk {
    const chunk = { records: this.#records, failures: this.#failures };
    this.#records = [];
    this.#failures = [];
    return chunk;
  }
}
