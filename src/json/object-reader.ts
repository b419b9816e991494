import { isUtf8 } from 'node:buffer';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  backslash,
  closeBrace,
  comma,
  endOfBrackets,
  endOfName,
  endOfScalar,
  endOfString,
  endOfValue,
  JsonFault,
  newline,
  openBrace,
  openBracket,
  quote,
  skipSpace,
} from './json-bytes.ts';

type Unreadable = 'not_an_object' | 'nested_too_deeply' | 'too_many_fields' | 'too_large';

interface ReadObject {
  readonly end: number;
  /** Strings, numbers, booleans, nulls and `nested`, one per known field, or undefined if the field is absent. */
  readonly values: readonly unknown[];
  /** The positions of known fields that occur more than once. */
  readonly repeated: readonly number[];
  readonly unreadable: Unreadable | undefined;
}

/** Stands for any array or object. No field accepts arrays or objects, so they are not parsed. */
export const nested = Object.freeze({});

/** Its memory is bounded, while JSON.parse creates 11 million objects (1.3 GB) from 32 MB of `{},{},…`. */
export class ObjectReader {
  readonly #positions: ReadonlyMap<string, number>;

  constructor(names: readonly string[]) {
    this.#positions = new Map(names.map((name, position) => [name, position]));
  }

  read(bytes: Buffer, from: number, onUnknownField: (name: string) => void): ReadObject {
    const values: unknown[] = new Array(this.#positions.size);
    const repeated: number[] = [];
    let unreadable: Unreadable | undefined;
    let at = from;
    if (bytes[at] !== openBrace) return { values, repeated, ...readOther(bytes, at) };
    at = skipSpace(bytes, at + 1);
    for (let fields = 1; bytes[at] !== closeBrace; fields++) {
      const valueAt = endOfName(bytes, at);
      const position =
        fields > limits.fieldsPerRecordMax ? undefined : this.#position(bytes, at, onUnknownField);
      const isNested = bytes[valueAt] === openBrace || bytes[valueAt] === openBracket;
      let end = isNested
        ? endOfValue(bytes, valueAt, limits.recordDepthMax - 1)
        : endOfScalar(bytes, valueAt);
      if (end < 0) {
        unreadable = 'nested_too_deeply';
        end = endOfBrackets(bytes, valueAt);
      }
      if (fields > limits.fieldsPerRecordMax) unreadable = 'too_many_fields';
      else if (position !== undefined) {
        if (values[position] !== undefined) repeated.push(position);
        values[position] = isNested ? nested : scalarAt(bytes, valueAt, end);
      }
      at = skipSpace(bytes, end);
      if (bytes[at] === comma) {
        at = skipSpace(bytes, at + 1);
        if (bytes[at] !== quote) throw new JsonFault(at);
      } else if (bytes[at] !== closeBrace) throw new JsonFault(at);
    }
    if (at + 1 - from > limits.recordBytesMax) unreadable = 'too_large';
    return { end: at + 1, values, repeated, unreadable };
  }

  #position(bytes: Buffer, at: number, onUnknownField: (name: string) => void): number | undefined {
    const name = nameAt(bytes, at);
    const position = this.#positions.get(name);
    if (position === undefined) onUnknownField(name);
    return position;
  }
}

function readOther(bytes: Buffer, from: number): Pick<ReadObject, 'end' | 'unreadable'> {
  const end = endOfValue(bytes, from, limits.recordDepthMax);
  if (end < 0) return { end: endOfBrackets(bytes, from), unreadable: 'nested_too_deeply' };
  return { end, unreadable: end - from > limits.recordBytesMax ? 'too_large' : 'not_an_object' };
}

/** A value larger than the maximum record size is not parsed, because its record is too large anyway. */
function scalarAt(bytes: Buffer, from: number, end: number): unknown {
  if (end - from > limits.recordBytesMax) return nested;
  return bytes[from] === quote ? stringAt(bytes, from, end) : JSON.parse(bytes.toString('latin1', from, end));
}

function stringAt(bytes: Buffer, from: number, end: number): string {
  for (let at = from + 1; at < end; at++)
    if (bytes[at] === backslash) return JSON.parse(bytes.toString('utf8', from, end)) as string;
  return bytes.toString('utf8', from + 1, end - 1);
}

/** Long names are truncated: no known field has one, and unknown names are only displayed. */
export function nameAt(bytes: Buffer, from: number): string {
  const end = endOfString(bytes, from);
  return end - from <= limits.fieldNameBytesMax
    ? stringAt(bytes, from, end)
    : bytes.toString('utf8', from + 1, from + limits.fieldNameBytesMax);
}

/** Parses a small JSON body in one go. Larger bodies are read record by record. */
export function parseBody(bytes: Buffer): unknown {
  const from = startOfJson(bytes);
  const end = findingFault(bytes, () => {
    const valueEnd = endOfValue(bytes, from, limits.bodyDepthMax);
    if (valueEnd < 0) throw new RequestError('nested_too_deeply');
    return endOfBody(bytes, valueEnd);
  });
  return JSON.parse(bytes.toString('utf8', from, end));
}

/** Refuses bytes that are not UTF-8, because silently replacing an invalid byte would lose data. */
export function startOfJson(bytes: Buffer): number {
  if (!isUtf8(bytes)) throw new RequestError('malformed_utf8');
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return skipSpace(bytes, hasMark ? 3 : 0);
}

/** Throws if anything but whitespace follows the value. */
export function endOfBody(bytes: Buffer, valueEnd: number): number {
  const end = skipSpace(bytes, valueEnd);
  if (end < bytes.length) throw new JsonFault(end);
  return end;
}

/** If the bytes are not JSON, the error contains the byte position. */
export function findingFault<T>(bytes: Buffer, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const place = error.at < bytes.length ? `at byte ${error.at}, counted from 0` : 'it ends too early';
    throw new RequestError('malformed_json', {
      message: `The body is not valid JSON (${place}); send one JSON object.`,
    });
  }
}

/** If a line of NDJSON is not JSON, the error contains the line number. */
export function findingFaultInLine<T>(bytes: Buffer, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    let line = 1;
    for (let at = 0; at < error.at; at++) if (bytes[at] === newline) line++;
    throw new RequestError('malformed_json', {
      message: `Line ${line} of the body, counted from 1, is not valid JSON; send one record per line.`,
    });
  }
}
