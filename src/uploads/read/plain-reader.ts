import { closeBrace, colon, comma, isSpecial, openBrace, quote, skipSpace } from '../../json/json-bytes.ts';
import { limits } from '../../limits.ts';
import { type ArrayWriter, viewOf } from '../../postgres/binary/array-writer.ts';
import type { Field, Mode, Plain, Scalar } from '../../registry/fields.ts';
import { isProblem } from '../../registry/fields.ts';
import { eventTime } from '../../registry/interaction.ts';
import { type Instant, readDateBytes, readDateTimeBytes } from '../../registry/times.ts';

/**
 * The fast path. It reads records straight into the arrays for PostgreSQL, without creating objects or strings. A plain
 * record, as almost every one is, has only known fields, each once, with valid values and no escapes. All others take
 * the slow path, which alone decides whether a record is invalid and why. A property test compares the two paths.
 */
export class PlainReader {
  readonly #fields: readonly PlainField[];
  readonly #columns: readonly ArrayWriter[];
  readonly #all: number;
  readonly #required: number;
  #bytes: Uint8Array = new Uint8Array();
  #view = viewOf(this.#bytes);
  #at = 0;
  #seen = 0;
  readonly #capitals = new Uint8Array(2);
  readonly #lower = new Uint8Array(36);
  updated: Instant | null = null;
  eventTime: Instant | null = null;

  constructor(
    fields: Readonly<Record<string, Field>>,
    columns: readonly ArrayWriter[],
    mode: Mode = 'replace',
  ) {
    this.#fields = Object.entries(fields).map(([name, field], at) => plainField(name, field, at));
    this.#columns = columns;
    this.#all = 2 ** this.#fields.length - 1;
    this.#required =
      mode === 'merge'
        ? 1
        : this.#fields.reduce((bits, { bit, required }) => (required ? bits | bit : bits), 0);
  }

  /** A bitmask of the fields that the record contains, where the first field has the lowest bit. */
  get seen(): number {
    return this.#seen;
  }

  /** Returns the record's end. If the record is not plain, it returns -1 and has written nothing. */
  read(bytes: Uint8Array, at: number): number {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = viewOf(bytes);
    }
    this.#at = at;
    this.updated = null;
    this.#seen = 0;
    if (this.#readRecord() && this.#at - at <= limits.recordBytesMax) return this.#at;
    for (const { bit, at } of this.#fields) if (this.#seen & bit) this.#columns[at]?.takeBack();
    return -1;
  }

  #readRecord(): boolean {
    if (this.#all > maskMax || this.#bytes[this.#at] !== openBrace) return false;
    let expected = 0;
    do {
      this.#at++;
      this.#skipSpace();
      const field = this.#readName(expected);
      if (field === undefined || (this.#seen & field.bit) !== 0) return false;
      expected = field.at + 1;
      this.#skipSpace();
      if (this.#bytes[this.#at] !== colon) return false;
      this.#at++;
      this.#skipSpace();
      if (!this.#readValue(field, this.#columns[field.at] as ArrayWriter)) return false;
      this.#seen |= field.bit;
      this.#skipSpace();
    } while (this.#bytes[this.#at] === comma);
    if (this.#bytes[this.#at] !== closeBrace) return false;
    this.#at++;
    return this.#seen === this.#all || this.#fillIn();
  }

  /** Records in one export have their fields in the same order, so the expected field is tried first. */
  #readName(expected: number): PlainField | undefined {
    const next = this.#fields[expected];
    if (next && this.#isName(next)) return next;
    return this.#fields.find((field) => this.#isName(field));
  }

  #isName({ words, quoted }: PlainField): boolean {
    const bytes = this.#bytes;
    const from = this.#at;
    const end = from + quoted.length;
    if (end > bytes.length) return false;
    let at = from;
    for (let word = 0; word < words.length; word++, at += 4)
      if (this.#view.getInt32(at) !== words[word]) return false;
    for (; at < end; at++) if (bytes[at] !== quoted[at - from]) return false;
    this.#at = end;
    return true;
  }

  #fillIn(): boolean {
    if ((this.#seen & this.#required) !== this.#required) return false;
    for (const { bit, at, fallback } of this.#fields)
      if (!(this.#seen & bit)) this.#columns[at]?.append(fallback);
    return true;
  }

  #readValue(field: PlainField, column: ArrayWriter): boolean {
    const first = this.#bytes[this.#at];
    if (first === quote) return this.#readString(field, column);
    if (first === letterN) {
      if (field.required || !this.#isWord('null')) return false;
      column.append(field.fallback);
      return true;
    }
    if (field.plain.kind === 'boolean') {
      const value = first === letterT;
      if (!this.#isWord(value ? 'true' : 'false')) return false;
      column.append(value);
      return true;
    }
    if (field.plain.kind !== 'number' && field.plain.kind !== 'eventTimestamp') return false;
    const value = this.#readNumber();
    if (value === undefined) return false;
    const read = field.read(value);
    if (isProblem(read)) return false;
    if (field.plain.kind === 'number') column.append(read);
    else {
      this.eventTime = eventTime(value) ?? null;
      column.append(String(value));
    }
    return true;
  }

  #readString(field: PlainField, column: ArrayWriter): boolean {
    const bytes = this.#bytes;
    const from = this.#at + 1;
    const { plain } = field;
    if (plain.kind === 'uuid') {
      if (bytes[from + 36] !== quote || !column.appendUuid(bytes, from)) return false;
      this.#at = from + 37;
      return true;
    }
    const end = endOfPlain(plain.kind, bytes, from);
    if (end < 0) return false;
    this.#at = end + 1;
    switch (plain.kind) {
      case 'text':
        if (end - from > plain.bytesMax || (end === from && field.required)) return false;
        column.appendBytes(bytes, from, end);
        return true;
      case 'personId':
        if (end - from > plain.bytesMax || (end === from && field.required)) return false;
        if (this.#lowerUuid(from, end)) column.appendBytes(this.#lower, 0, 36);
        else column.appendBytes(bytes, from, end);
        return true;
      case 'country':
        if (end - from !== 2 || !isLetter(bytes[from] as number) || !isLetter(bytes[from + 1] as number))
          return false;
        this.#capitals[0] = (bytes[from] as number) & ~0x20;
        this.#capitals[1] = (bytes[from + 1] as number) & ~0x20;
        column.appendBytes(this.#capitals, 0, 2);
        return true;
      case 'dateTime': {
        const instant = readDateTimeBytes(bytes, from, end);
        if (instant === undefined) return false;
        if (field.isUpdated) this.updated = instant;
        column.append(instant);
        return true;
      }
      case 'eventTimestamp': {
        const instant = readDateTimeBytes(bytes, from, end);
        if (instant === undefined) return false;
        this.eventTime = instant;
        // The value is stored as JSON, so the quotes are included.
        column.appendBytes(bytes, from - 1, end + 1);
        return true;
      }
      case 'choice': {
        const value = plain.values.find((one) => isAt(bytes, from, end, one));
        if (value === undefined) return false;
        column.appendBytes(value, 0, value.length);
        return true;
      }
      case 'date': {
        const day = readDateBytes(bytes, from, end);
        if (day === undefined) return false;
        column.append(day);
        return true;
      }
      default:
        return false;
    }
  }

  /** Leaves the UUID in `#lower`. Returns false if it is not a UUID. */
  #lowerUuid(from: number, end: number): boolean {
    if (end - from !== 36) return false;
    for (let at = 0; at < 36; at++) {
      const byte = this.#bytes[from + at] as number;
      const isHyphen = at === 8 || at === 13 || at === 18 || at === 23;
      if (isHyphen ? byte !== minus : !isHexDigit(byte)) return false;
      this.#lower[at] = isHyphen ? byte : byte | 0x20;
    }
    return true;
  }

  /** Doubles represent up to 15 digits exactly, and their quotient is rounded correctly. Others take the slow path. */
  #readNumber(): number | undefined {
    const bytes = this.#bytes;
    let at = this.#at;
    const negative = bytes[at] === minus;
    if (negative) at++;
    const start = at;
    let digits = 0;
    for (; isDigit(bytes[at] as number); at++) digits = digits * 10 + (bytes[at] as number) - zero;
    const whole = at - start;
    if (whole === 0 || (whole > 1 && bytes[start] === zero)) return undefined;
    let decimals = 0;
    if (bytes[at] === point) {
      for (at++; isDigit(bytes[at] as number); at++, decimals++)
        digits = digits * 10 + (bytes[at] as number) - zero;
      if (decimals === 0) return undefined;
    }
    // An exponent, or any other byte that cannot follow a number, fails later, when a comma is expected.
    if (whole + decimals > 15) return undefined;
    this.#at = at;
    const value = digits / (powersOfTen[decimals] as number);
    return negative ? -value : value;
  }

  #isWord(word: 'null' | 'true' | 'false'): boolean {
    for (let at = 0; at < word.length; at++)
      if (this.#bytes[this.#at + at] !== word.charCodeAt(at)) return false;
    this.#at += word.length;
    return true;
  }

  #skipSpace(): void {
    this.#at = skipSpace(this.#bytes, this.#at);
  }
}

/** Larger masks would become negative, because `&` and `|` return signed 32-bit integers. */
const maskMax = 2 ** 31 - 1;

interface PlainField {
  readonly at: number;
  readonly bit: number;
  readonly quoted: Uint8Array;
  readonly words: Int32Array;
  readonly plain: Plain | { readonly kind: 'other' };
  readonly required: boolean;
  readonly fallback: Scalar | null;
  readonly read: Field['read'];
  readonly isUpdated: boolean;
}

function plainField(name: string, { plain, required, fallback, read }: Field, at: number): PlainField {
  const quoted = Buffer.from(JSON.stringify(name));
  return {
    at,
    bit: 2 ** at,
    quoted,
    words: Int32Array.from({ length: quoted.length >> 2 }, (_, word) => quoted.readInt32BE(word * 4)),
    plain: plain ?? { kind: 'other' },
    required,
    fallback: fallback ?? null,
    read,
    isUpdated: name === 'updated',
  };
}

const minus = 0x2d;
const point = 0x2e;
const zero = 0x30;
const letterN = 0x6e;
const letterT = 0x74;
const powersOfTen = Array.from({ length: 16 }, (_, power) => 10 ** power);

function isAt(bytes: Uint8Array, from: number, end: number, value: Uint8Array): boolean {
  if (end - from !== value.length) return false;
  for (let at = 0; at < value.length; at++) if (bytes[from + at] !== value[at]) return false;
  return true;
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= 0x39;
}

/** Setting the bit 0x20 turns a letter into lower case and leaves digits unchanged. */
function isHexDigit(byte: number): boolean {
  const small = byte | 0x20;
  return isDigit(byte) || (small >= 0x61 && small <= 0x66);
}

function isLetter(byte: number): boolean {
  const small = byte | 0x20;
  return small >= 0x61 && small <= 0x7a;
}

/**
 * Returns -1 if the string has escapes or forbidden characters. The usual lengths of dates and times are tried first,
 * because their parsers reject any invalid character before the quote.
 */
function endOfPlain(kind: PlainField['plain']['kind'], bytes: Uint8Array, from: number): number {
  if (kind === 'dateTime' || kind === 'eventTimestamp') {
    if (bytes[from + 20] === quote) return from + 20;
    if (bytes[from + 24] === quote) return from + 24;
  } else if (kind === 'date' && bytes[from + 10] === quote) return from + 10;
  for (let at = from; at < bytes.length; at++)
    if (isSpecial[bytes[at] as number] !== 0) return bytes[at] === quote ? at : -1;
  return -1;
}
