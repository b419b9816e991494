import { instantOf } from '../../parsing/values/formats.ts';

/** The values of a Parquet file's columns, from those in JSON. */

/** The precision and scale of every decimal column: what SQL databases take at most, with 9 digits for fractions. */
export const decimalForm = { precision: 38, scale: 9 };

const decimalEnd = 10n ** BigInt(decimalForm.precision);

/** The digits of a number at the scale of the column; undefined if it has more. */
export function decimalOf(value: number): bigint | undefined {
  const [mantissa = '', exponent = '0'] = String(Math.abs(value)).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const zeros = decimalForm.scale + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  const unit = 10n ** BigInt(Math.abs(zeros));
  if (zeros < 0 && digits % unit !== 0n) return undefined;
  const scaled = zeros < 0 ? digits / unit : digits * unit;
  if (scaled >= decimalEnd) return undefined;
  return value < 0 ? -scaled : scaled;
}

/** The epoch numbers from here on are milliseconds, below they are seconds. */
const epochSecondsEnd = 100_000_000_000;

/** Microseconds since 1970 of a date-time, or of an interaction's epoch seconds or milliseconds. */
export function microsecondsOf(value: string | number): bigint | undefined {
  if (typeof value === 'string') return instantOf(value);
  return BigInt(value < epochSecondsEnd ? value * 1_000 : value) * 1_000n;
}

/** Days since 1970. */
export function daysOf(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / 86_400_000;
}
