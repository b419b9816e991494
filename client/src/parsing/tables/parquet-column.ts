import type { ColumnMetaData, Compressors, DecodedArray, ParquetParsers, SchemaTree } from 'hyparquet';
import { parquetHeader, readPage } from 'hyparquet/src/column.js';
import { convert, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { FileError } from '../file-error.ts';

const windowBytes = 262_144;
const headerBytes = 16_384;
const headerBytesMax = 1_048_576;
/** The maximum size of a page, which is the smallest unit that can be decompressed. A page is usually 1 MiB. */
const pageBytesMax = 64 * 1_048_576;

/** Random access to a Parquet file's bytes, which is needed because the metadata is at the end. */
export interface ParquetBytes {
  readonly byteLength: number;
  slice(start: number, end?: number): Promise<ArrayBuffer>;
  readonly compressors: Compressors;
}

/**
 * Reads one column of a row group page by page. hyparquet itself reads whole columns and needed 520 MB for a row group of a
 * million transactions. This class keeps only one page per column in memory.
 */
export class ParquetColumn {
  readonly #bytes: ParquetBytes;
  readonly #end: number;
  readonly #decoder: Parameters<typeof readPage>[2];
  readonly #textOf: (value: unknown) => string;
  #windowStart: number;
  #reader = { view: new DataView(new ArrayBuffer(0)), offset: 0 };
  #dictionary: DecodedArray | undefined;
  #values: ArrayLike<unknown> = [];
  #at = 0;

  constructor(bytes: ParquetBytes, path: readonly SchemaTree[], data: ColumnMetaData) {
    const { element } = path[path.length - 1] as SchemaTree;
    const { type, codec, path_in_schema: pathInSchema } = data;
    const scale = scaleOf(element);
    // hyparquet converts a decimal to a number, which loses digits. Without the type, it leaves the digits unchanged.
    const { converted_type: _, logical_type: __, ...plain } = element;
    const decoded = scale === undefined ? element : plain;
    const decoding = { element: decoded, utf8: scale === undefined, schemaPath: [...path] };
    this.#bytes = bytes;
    if (element.logical_type?.type === 'FLOAT16')
      throw new FileError(`column "${element.name}" has numbers with 16 bits; write it as DOUBLE`);
    this.#textOf = type === 'FLOAT' ? textOfFloat : (value) => textOf(value, scale);
    this.#decoder = { pathInSchema, type, codec, ...decoding, compressors: bytes.compressors, parsers };
    const dataStart = Number(data.data_page_offset);
    this.#windowStart = Math.min(Number(data.dictionary_page_offset || dataStart), dataStart);
    this.#end = this.#windowStart + Number(data.total_compressed_size);
  }

  /** Returns the next values as text. A null becomes ''. */
  async take(count: number): Promise<string[]> {
    const texts: string[] = [];
    while (texts.length < count) {
      if (this.#at === this.#values.length) await this.#nextPage();
      const end = Math.min(this.#values.length, this.#at + count - texts.length);
      while (this.#at < end) texts.push(this.#textOf(this.#values[this.#at++]));
    }
    return texts;
  }

  async #nextPage(): Promise<void> {
    const header = await this.#nextHeader();
    if (Math.max(header.compressed_page_size, header.uncompressed_page_size) > pageBytesMax)
      throw new FileError(
        'it has a page of more than 64 MiB; write it again with smaller pages, 1 MiB is usual',
      );
    await this.#ensure(header.compressed_page_size);
    const { data } = readPage(this.#reader, header, this.#decoder, this.#dictionary, undefined, 0);
    if (header.type === 'DICTIONARY_PAGE') this.#dictionary = data && convert(data, this.#decoder);
    else this.#values = data ?? [];
    this.#at = header.type === 'DICTIONARY_PAGE' ? this.#values.length : 0;
  }

  /** Reads the next page header, whose length is known only after it is parsed. */
  async #nextHeader() {
    await this.#ensure(headerBytes);
    const { offset } = this.#reader;
    try {
      return parquetHeader(this.#reader);
    } catch {
      this.#reader.offset = offset;
      await this.#ensure(headerBytesMax);
      return parquetHeader(this.#reader);
    }
  }

  /** Makes sure that the window has at least this many more bytes, or the rest of the column. */
  async #ensure(bytes: number): Promise<void> {
    const { view, offset } = this.#reader;
    const from = this.#windowStart + offset;
    if (from >= this.#end) throw new FileError('it is cut off; write it again');
    if (view.byteLength - offset >= Math.min(bytes, this.#end - from)) return;
    const to = Math.min(from + Math.max(bytes, windowBytes), this.#end);
    this.#reader = { view: new DataView(await this.#bytes.slice(from, to)), offset: 0 };
    this.#windowStart = from;
  }
}

/** Returns a decimal's scale, or undefined for other types. */
export function scaleOf({ converted_type, logical_type, scale }: SchemaTree['element']): number | undefined {
  if (logical_type?.type === 'DECIMAL') return logical_type.scale;
  return converted_type === 'DECIMAL' ? (scale ?? 0) : undefined;
}

function textOf(value: unknown, scale: number | undefined): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  if (scale === undefined) return String(value);
  const digits = value instanceof Uint8Array ? signedOf(value) : BigInt(value as number | bigint);
  return decimalText(digits, scale);
}

/** Returns the shortest decimal that is this number with 32 bits. As a number with 64 bits, 9.99 would be 9.989999771118164. */
function textOfFloat(value: unknown): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return textOf(value, undefined);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

function signedOf(bytes: Uint8Array): bigint {
  let digits = 0n;
  for (const byte of bytes) digits = (digits << 8n) | BigInt(byte);
  return BigInt.asIntN(bytes.length * 8, digits);
}

function decimalText(digits: bigint, scale: number): string {
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0');
  const whole = text.slice(0, text.length - scale);
  return `${digits < 0n ? '-' : ''}${whole}${scale > 0 ? `.${text.slice(-scale)}` : ''}`;
}

const parsers: ParquetParsers = {
  ...DEFAULT_PARSERS,
  timestampFromMilliseconds: (ms) => new Date(Number(ms)).toISOString(),
  timestampFromMicroseconds: isoOfMicroseconds,
  timestampFromNanoseconds: (ns) => isoOfMicroseconds(ns / 1_000n),
  dateFromDays: (days) => new Date(days * 86_400_000).toISOString().slice(0, 10),
};

/** Formats microseconds as ISO 8601. JavaScript dates have only milliseconds, but the service stores microseconds. */
function isoOfMicroseconds(us: bigint): string {
  const part = ((us % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((us - part) / 1_000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(part).padStart(6, '0')}Z`;
}
