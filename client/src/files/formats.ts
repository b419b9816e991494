import { daysOf } from './date-format.ts';

/**
 * The formats in the record schemas. JSON Schema only names them; these are the service's rules: a date-time needs no
 * seconds and no offset, and its year in UTC has four digits.
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
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.\d{1,9})?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?$/i;
const earliestMs = Date.parse('0001-01-01T00:00:00Z');
const latestMs = Date.parse('9999-12-31T23:59:59.999Z');

function isDateTime(text: string): boolean {
  const match = dateTime.exec(text);
  if (match === null || !isDate(match[1] as string)) return false;
  const [, date, hour, minute, second = '00', sign, hours = '0', minutes = '0'] = match;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  const ms = Date.parse(`${date}T${hour}:${minute}:${second}Z`) - offsetMs;
  return ms >= earliestMs && ms <= latestMs;
}
