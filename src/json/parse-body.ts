import { isUtf8 } from 'node:buffer';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { endOfValue, JsonFault, newline, skipSpace } from './json-bytes.ts';

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
