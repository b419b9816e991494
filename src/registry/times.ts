// Dates and times are stored as days or microseconds since the start of 2000 in UTC, as in PostgreSQL.

const epochMs = Date.UTC(2000, 0, 1);
const dayMs = 86_400_000;
const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The first and last instant with a four-digit year. */
const earliestMs = epochMs - 730_119 * dayMs;
export const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Microseconds since 2000. A bigint if a number would not be exact, which is the case before 1715 and after 2285. */
export type Instant = number | bigint;

/** Returns days since 2000. */
export function readDate(value: string): number | undefined {
  const bytes = bytesOf(value);
  return bytes && readDateBytes(bytes, 0, value.length);
}

export function readDateTime(value: string): Instant | undefined {
  const bytes = bytesOf(value);
  return bytes && readDateTimeBytes(bytes, 0, value.length);
}

/** The length of the longest date-time, with nine fractional digits and an offset. */
const charactersMax = 35;

/** The bytes are valid until the next call. Text that is too long or not ASCII cannot be a date-time. */
function bytesOf(value: string): Uint8Array | undefined {
  if (value.length > charactersMax) return undefined;
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code > 127) return undefined;
    scratch[at] = code;
  }
  return scratch;
}

const scratch = new Uint8Array(charactersMax);

export function readDateBytes(bytes: Uint8Array, from: number, end: number): number | undefined {
  return end - from === 10 ? readDay(bytes, from) : undefined;
}

/**
 * Reads digit by digit, because a regular expression and its substrings take five times as long, and uploads spend much
 * of their time here. Digits beyond microseconds are truncated: rounding could carry an instant into the next year.
 */
export function readDateTimeBytes(bytes: Uint8Array, from: number, end: number): Instant | undefined {
  if (end - from < 16) return undefined;
  const days = readDay(bytes, from);
  const separator = (bytes[from + 10] as number) | 0x20;
  if (days === undefined || separator !== 0x74 /* t */ || bytes[from + 13] !== 0x3a /* : */) return undefined;
  const hour = twoDigits(bytes, from + 11);
  const minute = twoDigits(bytes, from + 14);
  let at = from + 16;
  let second = 0;
  let microseconds = 0;
  if (at < end && bytes[at] === 0x3a) {
    if (end - at < 3) return undefined;
    second = twoDigits(bytes, at + 1);
    at += 3;
    if (at < end && bytes[at] === 0x2e /* . */) {
      const endOfFraction = endOfDigits(bytes, at + 1, end);
      if (endOfFraction === at + 1 || endOfFraction > at + 10) return undefined;
      microseconds = readFraction(bytes, at + 1, endOfFraction);
      at = endOfFraction;
    }
  }
  // PostgreSQL and POSIX time have no leap seconds, so second 60 is invalid.
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  const offsetMinutes = readOffset(bytes, at, end);
  if (offsetMinutes === undefined) return undefined;
  const ms = days * dayMs + ((hour * 60 + minute - offsetMinutes) * 60 + second) * 1_000;
  return toInstant(ms, microseconds);
}

export function instantOf(unixMs: number): Instant | undefined {
  return toInstant(unixMs - epochMs, 0);
}

/** Rounds up. */
export function unixMsOf(instant: Instant): number {
  const micros = BigInt(instant);
  const part = ((micros % 1_000n) + 1_000n) % 1_000n;
  return epochMs + Number((micros - part) / 1_000n) + (part > 0n ? 1 : 0);
}

/** From days since 2000. */
export function dateOf(days: number): string {
  return new Date(epochMs + days * dayMs).toISOString().slice(0, 10);
}

/** In UTC, with microseconds. */
export function isoOf(instant: Instant): string {
  const micros = ((BigInt(instant) % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = epochMs + Number((BigInt(instant) - micros) / 1_000n);
  return `${new Date(seconds).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`;
}

function toInstant(ms: number, microseconds: number): Instant | undefined {
  if (ms < earliestMs - epochMs || ms > latestMs - epochMs) return undefined;
  const instant = ms * 1_000 + microseconds;
  return Number.isSafeInteger(instant) ? instant : BigInt(ms) * 1_000n + BigInt(microseconds);
}

function readDay(bytes: Uint8Array, from: number): number | undefined {
  if (bytes[from + 4] !== 0x2d /* - */ || bytes[from + 7] !== 0x2d) return undefined;
  const year = twoDigits(bytes, from) * 100 + twoDigits(bytes, from + 2);
  const month = twoDigits(bytes, from + 5);
  const day = twoDigits(bytes, from + 8);
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1)) return undefined;
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (day > (daysInMonth[month - 1] as number) + (leap ? 1 : 0)) return undefined;
  return daysSince2000(year, month, day);
}

/** Years are counted from March, so that the leap day is the last day of the year. */
function daysSince2000(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const monthsSinceMarch = (month + 9) % 12;
  const century = Math.floor(marchYear / 100);
  const leapDays = Math.floor(marchYear / 4) - century + Math.floor(century / 4);
  return marchYear * 365 + leapDays + Math.floor((monthsSinceMarch * 153 + 2) / 5) + day - 730_426;
}

function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - 0x30;
  const ones = (bytes[at + 1] as number) - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

function endOfDigits(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++;
  return at;
}

function readFraction(bytes: Uint8Array, from: number, end: number): number {
  let micros = 0;
  for (let at = from; at < from + 6; at++)
    micros = micros * 10 + (at < end ? (bytes[at] as number) - 0x30 : 0);
  return micros;
}

/** Parses `Z`, `+02:00`, `+0200`, `+02` or nothing into minutes ahead of UTC. Returns undefined for anything else. */
function readOffset(bytes: Uint8Array, at: number, end: number): number | undefined {
  const rest = end - at;
  if (rest === 0) return 0;
  const sign = bytes[at] as number;
  if (rest === 1) return (sign | 0x20) === 0x7a /* z */ ? 0 : undefined;
  const colon = rest === 6 && bytes[at + 3] === 0x3a;
  if ((sign !== 0x2b /* + */ && sign !== 0x2d) || !(rest === 3 || rest === 5 || colon)) return undefined;
  const hours = twoDigits(bytes, at + 1);
  const minutes = rest === 3 ? 0 : twoDigits(bytes, colon ? at + 4 : at + 3);
  if (!(hours <= 23 && minutes <= 59)) return undefined;
  return (sign === 0x2b ? 1 : -1) * (hours * 60 + minutes);
}
