import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { canonicalJson } from '../registry/canonical-json.ts';
import type { ResourceType } from '../registry/resources.ts';
import { isRecord } from '../registry/validate.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { type BatchBuilder, builderOf, type CheckedBatch } from './batch-builder.ts';
import { parseBody } from './parse-body.ts';
import { skipSpace } from './plain-reader.ts';

/**
 * All of an upload that needs no database: reads the body, checks every record and cuts them into batches. All at once
 * and before the first is stored, so that nothing of what was read lives on while the database works.
 */
export function checkUpload(
  type: ResourceType,
  body: Buffer | undefined,
  recordsMax: number,
): CheckedBatch[] {
  return (body && checkBytes(type, body, recordsMax)) ?? checkParsed(type, body, recordsMax);
}

/** What two bodies are compared by: their JSON, whatever its spaces and the order of its members. */
export function hashBody(body: Buffer | undefined): Buffer {
  const hash = createHash('sha256');
  try {
    return hash.update(canonicalJson(parseBody(body))).digest();
  } catch (error) {
    // Nested too deeply to be put into one form: then only the same bytes are the same body.
    if (!(error instanceof RequestError) || error.code !== 'nested_too_deeply') throw error;
    return hash.update(body ?? '').digest();
  }
}

/** The long way, and the one that decides: whatever is wrong with a body is found and named here. */
export function checkParsed(
  type: ResourceType,
  body: Buffer | undefined,
  recordsMax: number,
): CheckedBatch[] {
  const { records, warnings } = readEnvelope(parseBody(body), recordsMax);
  const batches = new Batches(type, warnings);
  for (const record of records) batches.next().add(record, () => textOf(record));
  return batches.finish();
}

/**
 * The short way: `{"records":[…]}` and nothing else, taken apart record by record, so that what has to be parsed after
 * all is let go of at once. Undefined where the body is anything else, or not sound.
 */
function checkBytes(type: ResourceType, body: Buffer, recordsMax: number): CheckedBatch[] | undefined {
  if (!isUtf8(body)) return undefined;
  let at = openingOf(body);
  if (at < 0) return undefined;
  const batches = new Batches(type, new WarningCounter());
  for (let count = 1; ; count++) {
    const batch = batches.next();
    let end = batch.readPlain(body, at);
    if (end < 0) {
      end = endOfValue(body, at);
      const record = end < 0 ? undefined : parseRecord(body, at, end);
      if (record === undefined) return undefined;
      const [from, to] = [at, end];
      batch.add(record.value, () =>
        to - from > limits.rejectedRecordBytesMax ? null : body.toString('utf8', from, to),
      );
    }
    at = skipSpace(body, end);
    if (body[at] !== comma) break;
    at = skipSpace(body, at + 1);
    if (count === recordsMax) return undefined;
  }
  return isClosing(body, at) ? batches.finish() : undefined;
}

/** Hands each record the builder of its batch. */
class Batches {
  readonly #builder: BatchBuilder;
  readonly #now = new Date();
  readonly #done: CheckedBatch[] = [];

  constructor(type: ResourceType, warnings: WarningCounter) {
    this.#builder = builderOf(type);
    this.#builder.start(this.#now, warnings);
  }

  next(): BatchBuilder {
    if (this.#builder.received === limits.recordsPerBatch) {
      this.#done.push(this.#builder.finish());
      this.#builder.start(this.#now, new WarningCounter());
    }
    return this.#builder;
  }

  finish(): CheckedBatch[] {
    return [...this.#done, this.#builder.finish()];
  }
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const opening = [Buffer.from('{'), Buffer.from('"records"'), Buffer.from(':'), Buffer.from('[')];
const closing = [Buffer.from(']'), Buffer.from('}')];

/** Where the first record begins; -1 where a body does not begin as all but a few do. */
function openingOf(body: Buffer): number {
  return endOfTokens(body, 0, opening);
}

function isClosing(body: Buffer, at: number): boolean {
  return endOfTokens(body, at, closing) === body.length;
}

/** Where what follows these tokens begins, with space around each; -1 where they do not stand there. */
function endOfTokens(body: Buffer, from: number, tokens: readonly Buffer[]): number {
  let at = skipSpace(body, from);
  for (const token of tokens) {
    if (!body.subarray(at, at + token.length).equals(token)) return -1;
    at = skipSpace(body, at + token.length);
  }
  return at;
}

/**
 * Where the value ends that begins there: at the bracket that closes the first, or before the next comma or closing
 * bracket. In JSON that is sound, and what is not is found by parsing it.
 */
function endOfValue(body: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < body.length; at++) {
    const byte = body[at] as number;
    if (byte === quote) {
      at = endOfString(body, at + 1);
      if (at < 0) return -1;
    } else if (byte === 0x7b /* { */ || byte === 0x5b /* [ */) depth++;
    else if (byte === 0x7d /* } */ || byte === 0x5d /* ] */) {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (byte === comma && depth === 0) return at;
  }
  return -1;
}

/** Where the quote stands that ends a string. */
function endOfString(body: Buffer, from: number): number {
  for (let at = from; at < body.length; at++) {
    if (body[at] === quote) return at;
    if (body[at] === backslash) at++;
  }
  return -1;
}

function parseRecord(body: Buffer, from: number, end: number): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(body.toString('utf8', from, end)) };
  } catch {
    return undefined;
  }
}

/** Null where there is too much of it to be kept, or it is nested so deeply that it cannot be written down. */
function textOf(record: unknown): string | null {
  try {
    const text = JSON.stringify(record);
    return Buffer.byteLength(text) > limits.rejectedRecordBytesMax ? null : text;
  } catch {
    return null;
  }
}

/** The records of a request's body, once the envelope around them is known to be sound. */
function readEnvelope(body: unknown, recordsMax: number): { records: unknown[]; warnings: WarningCounter } {
  const records = isRecord(body) ? body.records : undefined;
  if (records === undefined || records === null)
    throw envelopeError('required', 'is required: an array of records');
  if (!Array.isArray(records)) throw envelopeError('wrong_type', 'must be an array of records');
  if (records.length === 0) throw envelopeError('required', 'is empty; send at least one record');
  if (records.length > recordsMax) {
    throw envelopeError(
      'too_many_records',
      `holds ${records.length} records and at most ${recordsMax} may be sent at once; split them over several requests`,
    );
  }
  const warnings = new WarningCounter();
  for (const name in body as object) if (name !== 'records') warnings.unknownField(name);
  return { records, warnings };
}

function envelopeError(code: string, message: string): RequestError {
  return new RequestError('invalid_request', { details: [{ field: 'records', code, message }] });
}
