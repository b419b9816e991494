import type { ColumnType, Scalar } from '../registry/fields.ts';
import type { Row } from '../registry/validate.ts';

/**
 * Arrays in PostgreSQL's binary form. `pg` sends a Buffer as a binary parameter; read as text, the arrays of a batch
 * cost PostgreSQL 11 to 12 of the 20 microseconds that a row takes in all, in this form 2.7.
 */
type Encode = (rows: readonly Row[], column: number) => Buffer;

const oids = {
  bool: 16,
  text: 25,
  float8: 701,
  date: 1082,
  timestamptz: 1184,
  numeric: 1700,
  uuid: 2950,
};
export const arrayHeaderBytes = 20;
/** A length and sixteen bytes. */
export const uuidArrayStride = 20;

/** Writes one value and returns where it ends. */
type Write = (buffer: Buffer, value: Scalar, at: number) => number;

function encoder(
  oid: number,
  bytesMaxOf: (rows: readonly Row[], column: number) => number,
  write: Write,
): Encode {
  return (rows, column) => {
    const buffer = Buffer.allocUnsafe(arrayHeaderBytes + rows.length * 4 + bytesMaxOf(rows, column));
    let at = arrayHeaderBytes;
    let hasNull = 0;
    for (const row of rows) {
      const value = row[column] as Scalar | null;
      if (value === null) {
        at = buffer.writeInt32BE(-1, at);
        hasNull = 1;
      } else {
        const end = write(buffer, value, at + 4);
        buffer.writeInt32BE(end - at - 4, at);
        at = end;
      }
    }
    // The header: one dimension, whether there are nulls, the type, how many, counted from 1.
    [1, hasNull, oid, rows.length, 1].forEach((part, index) => {
      buffer.writeInt32BE(part, index * 4);
    });
    return buffer.subarray(0, at);
  };
}

function perRow(bytes: number): (rows: readonly Row[]) => number {
  return (rows) => rows.length * bytes;
}

const hexDigit = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) hexDigit[digit.toString(16).charCodeAt(0)] = digit;

/** Where each of the 16 bytes begins in a hyphenated UUID. */
const uuidOffsets = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

function writeUuid(buffer: Buffer, value: Scalar, at: number): number {
  const text = value as string;
  for (let byte = 0; byte < 16; byte++) {
    const from = uuidOffsets[byte] as number;
    const high = hexDigit[text.charCodeAt(from)] as number;
    buffer[at + byte] = (high << 4) | (hexDigit[text.charCodeAt(from + 1)] as number);
  }
  return at + 16;
}

/** A count of microseconds: a number where that is exact, which it is for the years 1715 to 2285. */
function writeInt64(buffer: Buffer, value: Scalar, at: number): number {
  if (typeof value === 'bigint') return buffer.writeBigInt64BE(value, at);
  const high = Math.floor((value as number) / 0x1_0000_0000);
  buffer.writeInt32BE(high, at);
  return buffer.writeUInt32BE((value as number) - high * 0x1_0000_0000, at + 4);
}

/** In UTF-8 a UTF-16 unit takes three bytes at the most. */
function textBytesMax(rows: readonly Row[], column: number): number {
  return rows.reduce((bytes, row) => bytes + ((row[column] as string | null)?.length ?? 0) * 3, 0);
}

/** Short plain text, nearly all there is, is written here; the call into Node's own writer would cost more than it. */
function writeText(buffer: Buffer, value: Scalar, at: number): number {
  const text = value as string;
  const { length } = text;
  if (length > 64) return at + buffer.write(text, at, 'utf8');
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > 127) return at + buffer.write(text, at, 'utf8');
    buffer[at + index] = code;
  }
  return at + length;
}

/** The 17 digits of a double spread over five groups of four at the most; empty groups around them are not written. */
const numericBytesMax = 8 + 2 * 5;

/**
 * Writes the shortest decimal of a double: a sign, and groups of four digits of which the first weighs 10000^weight.
 * An amount with at most four decimals, nearly every one, needs no detour through text: below 10^15 no two decimals of
 * that length are the same double, so what divides back to the value is its shortest form.
 */
function writeNumeric(buffer: Buffer, sent: Scalar, at: number): number {
  const value = sent as number;
  const size = Math.abs(value);
  const scaled = Math.round(size * 10_000);
  if (scaled < 1e15 && scaled / 10_000 === size) return writeShortNumeric(buffer, scaled, value < 0, at);
  return writeLongNumeric(buffer, value, at);
}

function writeShortNumeric(buffer: Buffer, scaled: number, negative: boolean, at: number): number {
  const fraction = scaled % 10_000;
  const whole = (scaled - fraction) / 10_000;
  let next = at + 8;
  let weight = -1;
  if (whole > 0) {
    weight = whole < 1e4 ? 0 : whole < 1e8 ? 1 : 2;
    if (weight === 2) next = buffer.writeInt16BE(Math.floor(whole / 1e8), next);
    if (weight >= 1) next = buffer.writeInt16BE(Math.floor(whole / 1e4) % 1e4, next);
    next = buffer.writeInt16BE(whole % 1e4, next);
  }
  if (fraction > 0) next = buffer.writeInt16BE(fraction, next);
  buffer.writeInt16BE((next - at - 8) / 2, at);
  buffer.writeInt16BE(weight, at + 2);
  buffer.writeUInt16BE(negative ? 0x4000 : 0, at + 4);
  buffer.writeInt16BE(decimalsOf(fraction), at + 6);
  return next;
}

function decimalsOf(fraction: number): number {
  if (fraction === 0) return 0;
  if (fraction % 10 !== 0) return 4;
  if (fraction % 100 !== 0) return 3;
  return fraction % 1000 !== 0 ? 2 : 1;
}

function writeLongNumeric(buffer: Buffer, value: number, at: number): number {
  const [mantissa = '', exponent] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  // The point stands after this many of the digits; groups are counted from it in both directions.
  const point = Number(exponent) + 1;
  const weight = Math.ceil(point / 4) - 1;
  const padded = '0'.repeat((weight + 1) * 4 - point) + digits;
  let next = at + 8;
  for (let from = 0; from < padded.length; from += 4) {
    next = buffer.writeInt16BE(Number(padded.slice(from, from + 4).padEnd(4, '0')), next);
  }
  buffer.writeInt16BE((next - at - 8) / 2, at);
  buffer.writeInt16BE(weight, at + 2);
  buffer.writeUInt16BE(value < 0 ? 0x4000 : 0, at + 4);
  buffer.writeUInt16BE(Math.max(0, digits.length - point), at + 6);
  return next;
}

const encoders: Record<Exclude<ColumnType, 'jsonb'>, Encode> = {
  uuid: encoder(oids.uuid, perRow(16), writeUuid),
  text: encoder(oids.text, textBytesMax, writeText),
  date: encoder(oids.date, perRow(4), (buffer, value, at) => buffer.writeInt32BE(value as number, at)),
  timestamptz: encoder(oids.timestamptz, perRow(8), writeInt64),
  numeric: encoder(oids.numeric, perRow(numericBytesMax), writeNumeric),
  float8: encoder(oids.float8, perRow(8), (buffer, value, at) => buffer.writeDoubleBE(value as number, at)),
  bool: encoder(oids.bool, perRow(1), (buffer, value, at) => buffer.writeUInt8(value ? 1 : 0, at)),
};

/** One column of the rows as an array. */
export function binaryArray(type: ColumnType, rows: readonly Row[], column: number): Buffer {
  if (type === 'jsonb') throw new Error('no record has a column of this type');
  return encoders[type](rows, column);
}

/** Ids by themselves, as an array. */
export function uuidArray(ids: Iterable<string>): Buffer {
  return encoders.uuid(
    Array.from(ids, (id) => [id]),
    0,
  );
}
