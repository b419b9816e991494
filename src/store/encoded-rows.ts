import type { Instant } from '../registry/times.ts';
import { arrayHeaderBytes, uuidArrayStride, viewOf } from './array-writer.ts';

/**
 * Rows as the statements take them: one binary array per column. Records are brought into this form as soon as they are
 * checked, outside the heap: kept as objects until its batch was stored, what JSON.parse made of a body cost the
 * collector more than all other work on it.
 */
export interface EncodedRows {
  readonly count: number;
  readonly arrays: readonly Buffer[];
}

/** Those of the rows that stand at these places, which ascend. */
export function pickRows({ count, arrays }: EncodedRows, places: readonly number[]): EncodedRows {
  if (places.length === count) return { count, arrays };
  return { count: places.length, arrays: arrays.map((array) => pickElements(array, places)) };
}

function pickElements(array: Buffer, places: readonly number[]): Buffer {
  const view = viewOf(array);
  const picked = Buffer.allocUnsafe(array.length);
  array.copy(picked, 0, 0, arrayHeaderBytes);
  picked.writeInt32BE(places.length, 12);
  let from = arrayHeaderBytes;
  let to = arrayHeaderBytes;
  let place = 0;
  for (const wanted of places) {
    for (; place <= wanted; place++) {
      const end = from + 4 + Math.max(0, view.getInt32(from));
      if (place < wanted) from = end;
      // Most values are short, and the call into Node's own copying would cost more than they do.
      else if (end - from > 64) to += array.copy(picked, to, from, end);
      else while (from < end) picked[to++] = array[from++] as number;
      from = end;
    }
  }
  // A few of many would keep the memory of all.
  return to * 8 < array.length ? Buffer.from(picked.subarray(0, to)) : picked.subarray(0, to);
}

/** The latest instant of an array, passing over the rows that are `left out`; undefined if there is none. */
export function latestInstant(
  array: Buffer,
  count: number,
  leftOut: (place: number) => boolean,
): Instant | undefined {
  const view = viewOf(array);
  let latest: Instant | undefined;
  let at = arrayHeaderBytes;
  for (let place = 0; place < count; place++) {
    const isNull = view.getInt32(at) < 0;
    at += 4;
    if (isNull) continue;
    if (!leftOut(place)) {
      const instant = instantAt(view, at);
      if (latest === undefined || instant > latest) latest = instant;
    }
    at += 8;
  }
  return latest;
}

/** A number where that is exact, for a bigint takes longer to make than all the rest. */
function instantAt(view: DataView, at: number): Instant {
  const instant = view.getInt32(at) * 0x1_0000_0000 + view.getUint32(at + 4);
  return Number.isSafeInteger(instant) ? instant : view.getBigInt64(at);
}

/** The UUIDs of an array, null where there is none. */
export function uuidsOf(array: Buffer, count: number): (string | null)[] {
  const ids: (string | null)[] = [];
  let at = arrayHeaderBytes;
  for (let place = 0; place < count; place++) {
    const isNull = array.readInt32BE(at) < 0;
    ids.push(isNull ? null : uuidFrom(array, at + 4));
    at += isNull ? 4 : uuidArrayStride;
  }
  return ids;
}

/** The UUID at that place of an array that has no nulls. */
export function uuidAt(array: Buffer, place: number): string {
  return uuidFrom(array, arrayHeaderBytes + place * uuidArrayStride + 4);
}

function uuidFrom(array: Buffer, at: number): string {
  const hex = array.toString('hex', at, at + 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
