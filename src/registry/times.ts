/** Calendar and clock as they arrive in JSON, brought into the one form that is stored: UTC, microseconds. */

const datePattern = /^(\d{4})-(\d{2})-(\d{2})$/;
const dateTimePattern =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:[Zz]|([+-])(\d{2})(?::?(\d{2}))?)?$/;
const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** First and last instant that a year of four digits can name. */
const earliestMs = Date.UTC(2000, 0, 1) - 730_119 * 86_400_000;
export const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The day as sent, or undefined when the calendar has no such day. */
export function readDate(value: string): string | undefined {
  const parts = datePattern.exec(value);
  return parts && isDay(Number(parts[1]), Number(parts[2]), Number(parts[3])) ? value : undefined;
}

/**
 * The instant as `YYYY-MM-DDTHH:MM:SS.ffffffZ`, or undefined. The form has one length, so that instants compare as
 * strings. Digits beyond the microsecond are cut, not rounded: rounding could carry an instant into the next year.
 */
export function readDateTime(value: string): string | undefined {
  const parts = dateTimePattern.exec(value);
  if (!parts) return undefined;
  const [
    ,
    year,
    month,
    day,
    hour,
    minute,
    second = '0',
    fraction = '',
    sign,
    offsetHour,
    offsetMinute = '0',
  ] = parts;
  if (!isDay(Number(year), Number(month), Number(day))) return undefined;
  // A leap second has no place in the time that PostgreSQL and POSIX count, so 60 is refused.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const microseconds = fraction.slice(0, 6).padEnd(6, '0');
  if (sign === undefined) {
    return `${year}-${month}-${day}T${hour}:${minute}:${second.padStart(2, '0')}.${microseconds}Z`;
  }
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000;
  const local = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second.padStart(2, '0')}Z`);
  const utcMs = sign === '+' ? local - offsetMs : local + offsetMs;
  if (utcMs < earliestMs || utcMs > latestMs) return undefined;
  return `${new Date(utcMs).toISOString().slice(0, 20)}${microseconds}Z`;
}

function isDay(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return day <= (daysInMonth[month - 1] ?? 0) + (leap ? 1 : 0);
}
