import { createHash } from 'node:crypto';
import { invalidRequest, RequestError } from '../../errors.ts';
import {
  closeBrace,
  closeBracket,
  comma,
  endOfName,
  endOfValue,
  JsonFault,
  newline,
  openBrace,
  openBracket,
  skipRestOfLine,
  skipSpace,
} from '../../json/json-bytes.ts';
import {
  endOfBody,
  findingFault,
  findingFaultInLine,
  nameAt,
  startOfJson,
} from '../../json/object-reader.ts';
import { limits } from '../../limits.ts';
import type { Mode } from '../../registry/fields.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { WarningCounter } from '../../registry/warnings.ts';
import type { BatchBuilder, Builders, CheckedBatch } from './batch-builder.ts';

/** Finishes before the first batch is stored, so the body is not in memory while the database works. */
export function checkUpload(
  builders: Builders,
  type: UploadType,
  body: Buffer | undefined,
  recordsMax: number,
  { mode = 'replace', isLines = false, mayReadFast = true, wantsHash = false }: CheckOptions = {},
): CheckedBatch[] {
  if (body === undefined) throw isLines ? recordsEmpty() : recordsMissing();
  const batches = new Batches(builders(type, mode), wantsHash);
  const reader = new UploadReader(batches, body, recordsMax, mayReadFast);
  return isLines
    ? findingFaultInLine(body, () => reader.readLines())
    : findingFault(body, () => reader.read());
}

interface CheckOptions {
  readonly mode?: Mode;
  /** NDJSON: one record per line, and no enclosing object. */
  readonly isLines?: boolean;
  readonly mayReadFast?: boolean;
  readonly wantsHash?: boolean;
}

/** For comparing two uploads. It covers the records' stored form in the order sent, and the failed records' fields. */
export function hashBatches(batches: readonly CheckedBatch[]): Buffer {
  const hash = createHash('sha256');
  for (const { rows, indices, failedSha256, received } of batches) {
    hash.update(
      Int32Array.from([received, rows.count, ...indices, ...rows.arrays.map(({ length }) => length)]),
    );
    for (const array of rows.arrays) hash.update(array);
    hash.update(failedSha256 ?? '');
  }
  return hash.digest();
}

class UploadReader {
  readonly #body: Buffer;
  readonly #recordsMax: number;
  readonly #mayReadFast: boolean;
  readonly #batches: Batches;
  readonly #beside = new WarningCounter();
  #besideBytes = 0;
  #hasRecords = false;
  /** Thrown at the end, when the rest of the body is known to be valid JSON. */
  #problem: RequestError | undefined;

  constructor(batches: Batches, body: Buffer, recordsMax: number, mayReadFast: boolean) {
    this.#batches = batches;
    this.#body = body;
    this.#recordsMax = recordsMax;
    this.#mayReadFast = mayReadFast;
  }

  read(): CheckedBatch[] {
    const body = this.#body;
    let at = startOfJson(body);
    if (body[at] !== openBrace) {
      endOfBody(body, this.#skip(at));
      throw recordsMissing();
    }
    at = skipSpace(body, at + 1);
    while (body[at] !== closeBrace) {
      at = skipSpace(body, this.#readMember(at));
      if (body[at] === comma) {
        at = skipSpace(body, at + 1);
        if (body[at] === closeBrace) throw new JsonFault(at);
      } else if (body[at] !== closeBrace) throw new JsonFault(at);
    }
    endOfBody(body, at + 1);
    if (!this.#hasRecords) throw recordsMissing();
    if (this.#problem) throw this.#problem;
    return this.#batches.finish(this.#beside);
  }

  readLines(): CheckedBatch[] {
    const body = this.#body;
    let at = startOfJson(body);
    if (at === body.length) throw recordsEmpty();
    for (let count = 1; at < body.length; count++) {
      const end = skipRestOfLine(body, this.#readRecord(at, count));
      if (end < body.length && body[end] !== newline) throw new JsonFault(end);
      at = skipSpace(body, end);
    }
    return this.#batches.finish(this.#beside);
  }

  #readMember(from: number): number {
    const valueAt = endOfName(this.#body, from);
    const name = nameAt(this.#body, from);
    if (name !== 'records') {
      const end = this.#skip(valueAt);
      this.#besideBytes += end - from;
      if (this.#besideBytes > limits.besideRecordsBytesMax) throw tooMuchBeside();
      this.#beside.unknownField(name);
      return end;
    }
    if (this.#hasRecords) throw recordsError('repeated_field', 'is given more than once; send one array');
    this.#hasRecords = true;
    if (this.#body[valueAt] === openBracket) return this.#readRecords(valueAt);
    const end = this.#skip(valueAt);
    const isNull = this.#body.toString('latin1', valueAt, end) === 'null';
    this.#problem = isNull ? recordsMissing() : recordsError('wrong_type', 'must be an array of records');
    return end;
  }

  #readRecords(from: number): number {
    const body = this.#body;
    let at = skipSpace(body, from + 1);
    if (body[at] === closeBracket) {
      this.#problem = recordsEmpty();
      return at + 1;
    }
    for (let count = 1; ; count++) {
      at = skipSpace(body, this.#readRecord(at, count));
      if (body[at] === closeBracket) return at + 1;
      if (body[at] !== comma) throw new JsonFault(at);
      at = skipSpace(body, at + 1);
    }
  }

  #readRecord(at: number, count: number): number {
    if (count > this.#recordsMax) throw tooManyRecords(this.#recordsMax);
    const batch = this.#batches.next();
    const fastEnd = this.#mayReadFast ? batch.readFast(this.#body, at) : -1;
    return fastEnd < 0 ? batch.readSlowly(this.#body, at) : fastEnd;
  }

  #skip(from: number): number {
    const end = endOfValue(this.#body, from, limits.bodyDepthMax - 1);
    if (end < 0) throw new RequestError('nested_too_deeply');
    return end;
  }
}

class Batches {
  readonly #builder: BatchBuilder;
  readonly #now = new Date();
  readonly #done: CheckedBatch[] = [];
  readonly #wantsHash: boolean;

  constructor(builder: BatchBuilder, wantsHash: boolean) {
    this.#wantsHash = wantsHash;
    this.#builder = builder;
    this.#builder.start(this.#now, wantsHash);
  }

  next(): BatchBuilder {
    if (this.#builder.received === limits.recordsPerBatch) {
      this.#done.push(this.#builder.finish());
      this.#builder.start(this.#now, this.#wantsHash);
    }
    return this.#builder;
  }

  /** Warnings about members other than `records` are added to the first batch. */
  finish(beside: WarningCounter): CheckedBatch[] {
    return [...this.#done, this.#builder.finish()].map((batch, at) =>
      at === 0 ? { ...batch, warnings: [...beside.list(), ...batch.warnings] } : batch,
    );
  }
}

function recordsError(code: string, message: string): RequestError {
  return invalidRequest({ field: 'records', code, message });
}

function recordsEmpty(): RequestError {
  return recordsError('required', 'is empty; send at least one record');
}

function recordsMissing(): RequestError {
  return recordsError('required', 'is required: an array of records');
}

function tooMuchBeside(): RequestError {
  const message = `has more than ${limits.besideRecordsBytesMax} bytes outside \`records\`; send only the records`;
  return invalidRequest({ field: 'body', code: 'too_large', message });
}

function tooManyRecords(recordsMax: number): RequestError {
  return recordsError(
    'too_many_records',
    `has more than ${recordsMax} records, the maximum per request; split them into several requests`,
  );
}
