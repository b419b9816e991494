import { randomUUIDv7 } from 'node:crypto';
import { type Instant, unixMsOf } from './times.ts';

export const firstUuid = '00000000-0000-0000-0000-000000000000';
export const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A UUIDv7 starts with 48 bits of Unix time in milliseconds. */
export function msOfUuidV7(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The counter of up to 4,095 follows the time, so that ids within one millisecond are ascending. */
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

/** Separates ids of earlier milliseconds from the others. */
export function uuidFloor(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** The next id, which has the same time. */
export function uuidAfter(id: string): string {
  const next = BigInt(`0x${id.replaceAll('-', '')}`) + 1n;
  return next
    .toString(16)
    .padStart(32, '0')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** For ids that are compared with the database's times. The clock of this process may differ. */
export function uuidV7At(time: Date): string {
  return uuidFloor(time.getTime()).slice(0, 14) + randomUUIDv7().slice(14);
}

/** Ids have millisecond precision, so the instant is rounded up. */
export function firstIdFrom(instant: Instant): string {
  return uuidFloor(Math.max(0, unixMsOf(instant)));
}

export function timeOfUuidV7(id: string): string {
  return new Date(msOfUuidV7(id)).toISOString();
}
