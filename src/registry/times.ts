/**
 * Calendar and clock as they arrive in JSON, brought into the form that is stored: days and microseconds since the start
 * of the year 2000 in UTC, which is how PostgreSQL counts.
 */

const epochMs = Date.UTC(2000, 0, 1);
const dayMs = 86_400_000;
const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** First and last instant that a year of four digits can name. */
const earliestMs = epochMs - 730_119 * dayMs;
export const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Microseconds since 2000; a bigint where a number would not be exact, before 1715 and after 2285. */
export type Instant = number | bigint;

/** Days since 2000, or undefined when the calendar has no such day. */
export function readDate(value: string): number | undefined {
  return value.length === 10 ? readDay(value) : undefined;
}

/**
 * The instant that an ISO 8601 date-time names, or undefined. Read digit by digit: a pattern and the strings it cuts out
 * take five times as long, and uploads spend their time here. Digits beyond the microsecond are cut, not rounded, for
 * rounding could carry an instant into the next year.
 */
export function readDateTime(value: string): Instant | undefined {
  const days = readDay(value);
  const separator = value.charCodeAt(10) | 0x20;
  if (days === undefined || separator !== 0x74 /* t */ || value.charCodeAt(13) !== 0x3a /* : */)
    return undefined;
  const hour = twoDigits(value, 11);
  const minute = twoDigits(value, 14);
  let at = 16;
  let second = 0;
  let microseconds = 0;
  if (value.charCodeAt(at) === 0x3a) {
    second = twoDigits(value, 17);
    at = 19;
    if (value.charCodeAt(at) === 0x2e /* . */) {
      const end = endOfDigits(value, at + 1);
      if (end === at + 1 || end > at + 10) return undefined;
      microseconds = readFraction(value, at + 1, end);
      at = end;
    }
  }
  // A leap second has no place in the time that PostgreSQL and POSIX count, so 60 is refused.
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  const offsetMinutes = readOffset(value, at);
  if (offsetMinutes === undefined) return undefined;
  const ms = days * dayMs + ((hour * 60 + minute - offsetMinutes) * 60 + second) * 1_000;
  return toInstant(ms, microseconds);
}

/** The instant of a count of milliseconds since 1970, as clocks have it. */
export function instantOf(unixMs: number): Instant | undefined {
  return toInstant(unixMs - epochMs, 0);
}

/** Milliseconds since 1970, a part of one rounded up. */
export function unixMsOf(instant: Instant): number {
  const micros = BigInt(instant);
  const part = ((micros % 1_000n) + 1_000n) % 1_000n;
  return epochMs + Number((micros - part) / 1_000n) + (part > 0n ? 1 : 0);
}

function toInstant(ms: number, microseconds: number): Instant | undefined {
  if (ms < earliestMs - epochMs || ms > latestMs - epochMs) return undefined;
  const instant = ms * 1_000 + microseconds;
  return Number.isSafeInteger(instant) ? instant : BigInt(ms) * 1_000n + BigInt(microseconds);
}

/** The day that the first ten characters name, or undefined. */
function readDay(value: string): number | undefined {
  if (value.charCodeAt(4) !== 0x2d /* - */ || value.charCodeAt(7) !== 0x2d) return undefined;
  const year = twoDigits(value, 0) * 100 + twoDigits(value, 2);
  const month = twoDigits(value, 5);
  const day = twoDigits(value, 8);
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1)) return undefined;
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (day > (daysInMonth[month - 1] as number) + (leap ? 1 : 0)) return undefined;
  return daysSince2000(year, month, day);
}

/** Counted in years that begin in March, so that the leap day is the last of its year. */
function daysSince2000(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const monthsSinceMarch = (month + 9) % 12;
  const century = Math.floor(marchYear / 100);
  const leapDays = Math.floor(marchYear / 4) - century + Math.floor(century / 4);
  return marchYear * 365 + leapDays + Math.floor((monthsSinceMarch * 153 + 2) / 5) + day - 730_426;
}

/** The number of two digits at that place, or NaN. */
function twoDigits(value: string, at: number): number {
  const tens = value.charCodeAt(at) - 0x30;
  const ones = value.charCodeAt(at + 1) - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

function endOfDigits(value: string, from: number): number {
  let at = from;
  while (value.charCodeAt(at) >= 0x30 && value.charCodeAt(at) <= 0x39) at++;
  return at;
}

function readFraction(value: string, from: number, end: number): number {
  let micros = 0;
  for (let at = from; at < from + 6; at++)
    micros = micros * 10 + (at < end ? value.charCodeAt(at) - 0x30 : 0);
  return micros;
}

/** Minutes ahead of UTC from `Z`, `+02:00`, `+0200`, `+02` or nothing at all; undefined for anything else. */
function readOffset(value: string, at: number): number | undefined {
  const rest = value.length - at;
  if (rest === 0) return 0;
  const sign = value.charCodeAt(at);
  if (rest === 1) return (sign | 0x20) === 0x7a /* z */ ? 0 : undefined;
  const colon = rest === 6 && value.charCodeAt(at + 3) === 0x3a;
  if ((sign !== 0x2b /* + */ && sign !== 0x2d) || !(rest === 3 || rest === 5 || colon)) return undefined;
  const hours = twoDigits(value, at + 1);
  const minutes = rest === 3 ? 0 : twoDigits(value, colon ? at + 4 : at + 3);
  if (!(hours <= 23 && minutes <= 59)) return undefined;
  return (sign === 0x2b ? 1 : -1) * (hours * 60 + minutes);
}
