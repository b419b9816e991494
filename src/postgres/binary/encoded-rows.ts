import type { Instant } from '../../registry/times.ts';
import { ArrayWriter, arrayHeaderBytes, uuidArrayStride, viewOf } from './array-writer.ts';

/**
 * Rows as statement parameters, with one binary array per column, outside the JavaScript heap. Keeping the result of
 * JSON.parse until the batch was stored cost more in garbage collection than all other work on the batch.
 */
export interface EncodedRows {
  readonly count: number;
  readonly arrays: readonly Buffer[];
}

/** `picked` must be in ascending order. */
export function pickRows({ count, arrays }: EncodedRows, picked: readonly number[]): EncodedRows {
  if (picked.length === count) return { count, arrays };
  return { count: picked.length, arrays: arrays.map((array) => pickElements(array, picked)) };
}

/** `wanted` must be in ascending order. */
export function pickElements(array: Buffer, wanted: readonly number[]): Buffer {
  const view = viewOf(array);
  const picked = Buffer.allocUnsafe(array.length);
  array.copy(picked, 0, 0, arrayHeaderBytes);
  picked.writeInt32BE(wanted.length, 12);
  let from = arrayHeaderBytes;
  let to = arrayHeaderBytes;
  let row = 0;
  for (const next of wanted) {
    for (; row <= next; row++) {
      const end = from + 4 + Math.max(0, view.getInt32(from));
      if (row < next) from = end;
      // Most values are short, and copying a short value with Node's function costs more than the loop.
      else if (end - from > 64) to += array.copy(picked, to, from, end);
      else while (from < end) picked[to++] = array[from++] as number;
      from = end;
    }
  }
  // A small selection must not keep the whole buffer in memory.
  return to * 8 < array.length ? Buffer.from(picked.subarray(0, to)) : picked.subarray(0, to);
}

/** In an array without nulls. Includes `start` and excludes `end`. */
interface UuidRange {
  readonly ids: Buffer;
  readonly start: number;
  readonly end: number;
}

export function joinUuidRanges(ranges: readonly UuidRange[]): { count: number; ids: Buffer } {
  const at = (row: number) => arrayHeaderBytes + row * uuidArrayStride;
  const ids = Buffer.concat([
    ...ranges.slice(0, 1).map((range) => range.ids.subarray(0, arrayHeaderBytes)),
    ...ranges.map((range) => range.ids.subarray(at(range.start), at(range.end))),
  ]);
  const count = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  ids.writeInt32BE(count, 12);
  return { count, ids };
}

/** As strings, for comparisons. */
export function uuidBytes({ ids, start, end }: UuidRange): string[] {
  return Array.from({ length: end - start }, (_, index) => {
    const at = arrayHeaderBytes + (start + index) * uuidArrayStride + 4;
    return ids.toString('latin1', at, at + 16);
  });
}

/** Puts rows together from values of other rows. `like` are arrays of the same types. */
export function rowsOf(like: readonly Buffer[], rows: readonly (readonly Buffer[])[]): EncodedRows {
  const arrays = like.map((array, column) => {
    const header = Buffer.from(array.subarray(0, arrayHeaderBytes));
    header.writeInt32BE(1, 4);
    header.writeInt32BE(rows.length, 12);
    return Buffer.concat([header, ...rows.map((values) => values[column] as Buffer)]);
  });
  return { count: rows.length, arrays };
}

/** Both must have the same type. */
export function joinArrays(first: Buffer, second: Buffer): Buffer {
  const joined = Buffer.concat([first, second.subarray(arrayHeaderBytes)]);
  joined.writeInt32BE(first.readInt32BE(4) | second.readInt32BE(4), 4);
  joined.writeInt32BE(first.readInt32BE(12) + second.readInt32BE(12), 12);
  return joined;
}

export function replaceTexts(
  array: Buffer,
  count: number,
  values: ReadonlyMap<number, string | null>,
): Buffer {
  const before = new IndexedRows({ count, arrays: [array] });
  const replaced = new ArrayWriter('text', array.length);
  for (let row = 0; row < count; row++) {
    const value = before.valueAt(0, row);
    const other = values.get(row);
    if (other !== undefined) replaced.append(other);
    else if (before.isNullAt(0, row)) replaced.append(null);
    else replaced.appendBytes(value, 4, value.length);
  }
  return replaced.finish();
}

export function latestInstant(
  array: Buffer,
  count: number,
  isLeftOut: (row: number) => boolean,
): Instant | undefined {
  const view = viewOf(array);
  let latest: Instant | undefined;
  let at = arrayHeaderBytes;
  for (let row = 0; row < count; row++) {
    const isNull = view.getInt32(at) < 0;
    at += 4;
    if (isNull) continue;
    if (!isLeftOut(row)) {
      const instant = instantAt(view, at);
      if (latest === undefined || instant > latest) latest = instant;
    }
    at += 8;
  }
  return latest;
}

/** Returns a number if it is exact, because creating a bigint takes longer than everything else here. */
function instantAt(view: DataView, at: number): Instant {
  const instant = view.getInt32(at) * 0x1_0000_0000 + view.getUint32(at + 4);
  return Number.isSafeInteger(instant) ? instant : view.getBigInt64(at);
}

export function uuidsOf(array: Buffer, count: number): (string | null)[] {
  const ids: (string | null)[] = [];
  let at = arrayHeaderBytes;
  for (let row = 0; row < count; row++) {
    const isNull = array.readInt32BE(at) < 0;
    ids.push(isNull ? null : uuidFrom(array, at + 4));
    at += isNull ? 4 : uuidArrayStride;
  }
  return ids;
}

/** The array must not contain nulls. */
export function uuidAt(array: Buffer, row: number): string {
  return uuidFrom(array, arrayHeaderBytes + row * uuidArrayStride + 4);
}

export function idAt({ arrays }: EncodedRows, row: number): string {
  return uuidAt(arrays[0] as Buffer, row);
}

const hexDigits = Buffer.from(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join(''),
  'latin1',
);
/** Every UUID is written to this buffer before it becomes a string. The dashes never change. */
const uuidText = Buffer.alloc(36, '-');
/** The position of each byte's two digits in the text. */
const digitsAt = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** A string concatenated from slices would be a rope, and flattening it for a set lookup would double the cost. */
function uuidFrom(array: Buffer, at: number): string {
  for (let byte = 0; byte < digitsAt.length; byte++) {
    const to = digitsAt[byte] as number;
    const from = (array[at + byte] as number) * 2;
    uuidText[to] = hexDigits[from] as number;
    uuidText[to + 1] = hexDigits[from + 1] as number;
  }
  return uuidText.toString('latin1');
}

/** Random access to rows. The offset of each value is computed once. */
export class IndexedRows {
  readonly #arrays: readonly Buffer[];
  readonly #offsets: readonly Int32Array[];

  constructor({ count, arrays }: EncodedRows) {
    this.#arrays = arrays;
    this.#offsets = arrays.map((array) => offsetsOf(array, count));
  }

  /** Returns the value with its length prefix, as PostgreSQL receives it. */
  valueAt(column: number, row: number): Buffer {
    const offsets = this.#offsets[column] as Int32Array;
    return (this.#arrays[column] as Buffer).subarray(offsets[row], offsets[row + 1]);
  }

  textAt(column: number, row: number): string {
    return this.valueAt(column, row).toString('utf8', 4);
  }

  isNullAt(column: number, row: number): boolean {
    return this.valueAt(column, row).readInt32BE() < 0;
  }

  instantAt(column: number, row: number): Instant | undefined {
    const value = this.valueAt(column, row);
    return value.length === 4 ? undefined : instantAt(viewOf(value), 4);
  }
}

function offsetsOf(array: Buffer, count: number): Int32Array {
  const view = viewOf(array);
  const offsets = new Int32Array(count + 1).fill(arrayHeaderBytes);
  for (let row = 0; row < count; row++) {
    const at = offsets[row] as number;
    offsets[row + 1] = at + 4 + Math.max(0, view.getInt32(at));
  }
  return offsets;
}

/**
 * No buffer that shares the memory can be used again. The garbage collector would free the memory late, because it sees
 * only the small buffer object. JavaScript frees memory only if it is transferred to a buffer of length 0.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
