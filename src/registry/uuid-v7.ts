import { type Instant, unixMsOf } from './times.ts';

/** A UUIDv7 begins with the 48 bits of the millisecond in which it was made. */

export function msOfUuidV7(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
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
