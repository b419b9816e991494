// The format/ folder formats values, such as times, numbers and type names, for people to read.

const numberFormat = new Intl.NumberFormat();
const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB'];
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const dayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

const exactFormat = new Intl.NumberFormat(undefined, { maximumFractionDigits: 20 });

export function formatNumber(value: number): string {
  return numberFormat.format(value);
}

/** Formats a stored value without rounding. */
export function formatExact(value: number): string {
  return exactFormat.format(value);
}

export function formatBytes(bytes: number): string {
  const power = Math.min(byteUnits.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const digits = { maximumFractionDigits: power === 0 ? 0 : 1 };
  return `${(bytes / 1_000 ** power).toLocaleString(undefined, digits)} ${byteUnits[power]}`;
}

/** Formats a time in the reader's time zone. The line can break only between the date and the time. */
export function formatTime(iso: string): string {
  const parts = timeFormat.formatToParts(new Date(iso));
  const isClock = (at: number) => /^(hour|minute|second|dayPeriod)$/.test(parts[at]?.type ?? '');
  return parts
    .map(({ type, value }, at) =>
      type === 'literal' && isClock(at - 1) !== isClock(at + 1) ? value : value.replaceAll(' ', '\u00a0'),
    )
    .join('');
}

/** Returns the reader's time zone with its current offset, such as "Europe/Berlin (GMT+1)". */
export function timeZoneName(): string {
  const format = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' });
  const { timeZone } = format.resolvedOptions();
  const offset = format.formatToParts().find(({ type }) => type === 'timeZoneName')?.value;
  return offset === undefined || timeZone === 'UTC' ? timeZone : `${timeZone} (${offset})`;
}

/** Formats a UTC day such as 2026-11-16. */
export function formatDay(day: string): string {
  return dayFormat.format(new Date(`${day}T00:00:00Z`));
}

export function formatDuration(durationMs: number): string {
  return durationMs < 1_000 ? `${durationMs} ms` : `${(durationMs / 1_000).toFixed(1)} s`;
}

/** Removes the API path from a service error message, because console users do not call the API. */
export function inConsoleWords(message: string): string {
  return message.replace(/; upload it to \/v1\/data\/\S+ first/, '; upload it first');
}

/** Formats a count, such as "1 record" or "2,000 records". */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}

/** Formats "shop-categories" as "Shop categories". */
export function typeName(type: string): string {
  const words = type.replaceAll('-', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Converts an ISO time to the value of a datetime-local field, which is in the reader's time zone and has no offset. */
export function toLocalField(iso: string | undefined): string {
  const time = Date.parse(iso ?? '');
  if (Number.isNaN(time)) return '';
  const offsetMs = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - offsetMs).toISOString().slice(0, 16);
}

export function fromLocalField(value: string): string | undefined {
  const time = new Date(value);
  return value === '' || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
