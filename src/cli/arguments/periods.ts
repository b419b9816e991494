import { readDateTime, unixMsOf } from '../../registry/times.ts';
import { commandError } from './help.ts';

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const periodPattern = /^(\d{1,4})([smhd])$/;
const isPeriod = (text: string) => periodPattern.test(text);

export function readPeriod(text: string): number {
  const [, count = '', unit = ''] = periodPattern.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN);
  if (Number.isNaN(ms)) throw commandError(`"${text}" is not a period; write it as 24h, 30m, 90s or 7d`);
  return ms;
}

export function readExpiry(given: string): Date {
  const instant = readDateTime(given);
  if (instant === undefined && !isPeriod(given))
    throw commandError(
      `--expires takes a period such as 90d or a date-time such as 2027-01-01T00:00:00Z, not "${given}"`,
    );
  const ms = instant === undefined ? Date.now() + readPeriod(given) : unixMsOf(instant);
  if (ms <= Date.now())
    throw commandError(`--expires ${given} is in the past; give a future date, or a period such as 90d`);
  return new Date(ms);
}

export function readMoment(option: string, given: string): Date {
  if (isPeriod(given)) return new Date(Date.now() - readPeriod(given));
  const instant = readDateTime(/^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T00:00:00Z` : given);
  if (instant === undefined)
    throw commandError(
      `--${option} takes a period such as 30d, a day such as 2026-11-15, or a date-time such as 2026-11-15T06:40:00Z, not "${given}"`,
    );
  return new Date(unixMsOf(instant));
}
