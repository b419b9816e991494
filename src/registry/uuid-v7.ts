import { type Instant, unixMsOf } from './times.ts';

/** Come before and after every other UUID. */
export const firstUuid = '00000000-0000-0000-0000-000000000000';
export const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A UUIDv7 begins with the 48 bits of the millisecond in which it was made. */

export function msOfUuidV7(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/**
 * A new UUIDv7 in four words, with a counter of up to 4,095 after the time: those of one millisecond ascend with it.
 * `random` gives two words of random bits.
 */
export function uuidV7Words(
  ms: number,
  counter: number,
  random: readonly [number, number],
): [number, number, number, number] {
  const version = 0x7000;
  const variant = 0x8000_0000;
  return [
    Math.floor(ms / 0x1_0000),
    ((ms % 0x1_0000) * 0x1_0000) | version | counter,
    (random[0] & 0x3fff_ffff) | variant,
    random[1],
  ];
}

/** The smallest UUID of that millisecond: a bound between what was made before it and what was not. */
export function uuidFloor(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** The smallest id of what was made at this instant or later; ids count milliseconds, so a part of one rounds up. */
export function firstIdFrom(instant: Instant): string {
  return uuidFloor(Math.max(0, unixMsOf(instant)));
}

/** When an id was made, as ISO 8601. */
export function timeOfUuidV7(id: string): string {
  return new Date(msOfUuidV7(id)).toISOString();
}
