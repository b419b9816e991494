import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { canonicalJson } from '../registry/canonical-json.ts';
import type { ResourceType } from '../registry/resources.ts';
import { isRecord } from '../registry/validate.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { type BatchBuilder, builderOf, type CheckedBatch } from './batch-builder.ts';
import { comma, endOfTokens, endOfValue, skipSpace } from './json-bytes.ts';
import { parseBody, parseRecord } from './parse-body.ts';

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
    // Nested too deeply to be parsed: then only the same bytes are the same body.
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
  let at = endOfTokens(body, 0, opening);
  if (at < 0) return undefined;
  const batches = new Batches(type, new WarningCounter());
  for (let count = 1; ; count++) {
    const batch = batches.next();
    let end = batch.readPlain(body, at);
    if (end < 0) {
      end = endOfValue(body, at);
      const record = end < 0 ? undefined : tryRecord(body.subarray(at, end));
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
  return endOfTokens(body, at, closing) === body.length ? batches.finish() : undefined;
}

const opening = ['{', '"records"', ':', '['].map((token) => Buffer.from(token));
const closing = [']', '}'].map((token) => Buffer.from(token));

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

function tryRecord(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: parseRecord(bytes) };
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
