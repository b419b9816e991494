import { daysOf } from './date-format.ts';

/**
 * The formats in the record schemas. JSON Schema defines only their names, so these functions implement the service's rules:
 * seconds and offset are optional in a date-time, and its year in UTC must have four digits.
 */
export const formats = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  date: isDate,
  'date-time': isDateTime,
};

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return false;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month);
}

const dateTime =
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?$/i;
const earliestUs = BigInt(Date.parse('0001-01-01T00:00:00Z')) * 1_000n;
const latestUs = BigInt(Date.parse('9999-12-31T23:59:59.999Z')) * 1_000n + 999n;

function isDateTime(text: string): boolean {
  const us = instantOf(text);
  return us !== undefined && us >= earliestUs && us <= latestUs;
}

/**
 * Returns the microseconds since 1970, or undefined if the text is not a date-time. Digits after the microseconds are
 * dropped, as in the service.
 */
export function instantOf(text: string): bigint | undefined {
  const match = dateTime.exec(text);
  if (match === null || !isDate(match[1] as string)) return undefined;
  const [, date, hour, minute, second = '00', fraction = '', sign, hours = '0', minutes = '0'] = match;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  const ms = Date.parse(`${date}T${hour}:${minute}:${second}Z`) - offsetMs;
  return BigInt(ms) * 1_000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}
