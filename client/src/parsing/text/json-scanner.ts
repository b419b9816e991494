import { FileError, PlacedError } from '../file-error.ts';

/** A record longer than this must be a mistake, because the service accepts at most 64 KiB. */
export const recordCharactersMax = 1_048_576;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Finds the records in a JSON array, or in the `records` array of an object, as the text arrives. The scanner only tracks
 * brackets and strings. `JSON.parse` reads each record separately, so that one bad record does not make the whole file
 * unreadable.
 */
export class JsonScanner {
  #state: 'start' | 'member' | 'item' | 'end' = 'start';
  #isEnvelope = false;
  #hasRecords = false;
  #isAfterValue = false;
  #count = 0;
  #rest = '';

  /** Appends the text of each completed record to `found`. */
  push(text: string, isLast: boolean, found: string[]): void {
    const all = this.#rest + text;
    let at = 0;
    for (;;) {
      at = skipSpace(all, at);
      if (at >= all.length) break;
      const next = this.#step(all, at, isLast, found);
      if (next < 0) break;
      at = next;
    }
    this.#rest = all.slice(at);
    if (this.#rest.length > recordCharactersMax)
      throw this.#error(`is larger than ${recordCharactersMax} characters; check its brackets and quotes`);
    if (isLast && (this.#state !== 'end' || at < all.length))
      throw this.#error('is cut off; the file ends in the middle');
  }

  /** Reads the next token or value. Returns the position after it, or -1 if it is incomplete. */
  #step(all: string, at: number, isLast: boolean, found: string[]): number {
    const code = all.charCodeAt(at);
    if (this.#state === 'start') return this.#begin(code, at);
    if (this.#state === 'end')
      throw new FileError(
        'there is more text after the end of the JSON; if the file has a record on each line, name it .ndjson',
      );
    if (this.#state === 'member') return this.#member(all, at, code, isLast);
    return this.#item(all, at, code, isLast, found);
  }

  #begin(code: number, at: number): number {
    if (code !== openBracket && code !== openBrace)
      throw new FileError('it is not JSON: it begins with neither [ nor {; check the format of the file');
    this.#isEnvelope = code === openBrace;
    this.#state = this.#isEnvelope ? 'member' : 'item';
    return at + 1;
  }

  #member(all: string, at: number, code: number, isLast: boolean): number {
    if (code === comma) return at + 1;
    if (code === closeBrace) {
      if (!this.#hasRecords)
        throw new FileError(
          'it has no "records" array; put the records into an array, or name the file .ndjson if it has a record on each line',
        );
      this.#state = 'end';
      return at + 1;
    }
    const keyEnd = endOfValue(all, at, isLast);
    if (keyEnd < 0) return -1;
    const colonAt = skipSpace(all, keyEnd);
    const valueAt = skipSpace(all, colonAt + 1);
    if (valueAt >= all.length) return -1;
    if (code !== quote || all.charCodeAt(colonAt) !== colon)
      throw new FileError(
        'it is not JSON: a name in quotes and a colon are missing; check the format of the file',
      );
    if (all.slice(at, keyEnd) !== '"records"') return endOfValue(all, valueAt, isLast);
    if (all.charCodeAt(valueAt) !== openBracket)
      throw new FileError('its "records" is not an array; put the records into [ ]');
    this.#hasRecords = true;
    this.#state = 'item';
    return valueAt + 1;
  }

  #item(all: string, at: number, code: number, isLast: boolean, found: string[]): number {
    if (code === closeBracket) {
      this.#state = this.#isEnvelope ? 'member' : 'end';
      return at + 1;
    }
    if (this.#isAfterValue !== (code === comma))
      throw this.#error(code === comma ? 'has an extra comma before it' : 'has no comma before it');
    if (code === comma) {
      this.#isAfterValue = false;
      return at + 1;
    }
    const end = endOfValue(all, at, isLast);
    if (end < 0) return -1;
    if (end === at) throw this.#error('has brackets that do not match');
    found.push(all.slice(at, end));
    this.#count++;
    this.#isAfterValue = true;
    return end;
  }

  #error(what: string): PlacedError {
    return new PlacedError(`record ${this.#count + 1} ${what}; nothing after it can be read`);
  }
}

function skipSpace(all: string, from: number): number {
  let at = from;
  while (at < all.length && all.charCodeAt(at) <= 0x20) at++;
  return at;
}

/** Returns the end of the value at `from`, or -1 if the value is incomplete. */
function endOfValue(all: string, from: number, isLast: boolean): number {
  let depth = 0;
  for (let at = from; at < all.length; at++) {
    const code = all.charCodeAt(at);
    if (code === quote) {
      at = endOfString(all, at + 1);
      if (at < 0) return -1;
      if (depth === 0) return at + 1;
    } else if (code === openBrace || code === openBracket) depth++;
    else if (code === closeBrace || code === closeBracket) {
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (code === comma || code <= 0x20)) return at;
  }
  return depth === 0 && isLast ? all.length : -1;
}

/** Returns the index of the closing quote, which is the first one with an even number of backslashes before it. */
function endOfString(all: string, from: number): number {
  for (let at = all.indexOf('"', from); at >= 0; at = all.indexOf('"', at + 1)) {
    let before = at - 1;
    while (before >= from && all.charCodeAt(before) === backslash) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return -1;
}
