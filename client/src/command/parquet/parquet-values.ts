import { instantOf } from '../../parsing/values/formats.ts';

/** This file converts JSON values to Parquet column types. */

/** The precision and scale of every decimal column. The precision is the usual maximum in SQL databases. */
export const decimalForm = { precision: 38, scale: 9 };

const decimalEnd = 10n ** BigInt(decimalForm.precision);

/** Returns the value as an integer at the column's scale, or undefined if the value has too many digits. */
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

/** Epoch numbers below this are seconds, and all others are milliseconds. */
const epochSecondsEnd = 100_000_000_000;

/** Converts a date-time or an interaction's epoch number (seconds or milliseconds) to microseconds since 1970. */
export function microsecondsOf(value: string | number): bigint | undefined {
  if (typeof value === 'string') return instantOf(value);
  return BigInt(value < epochSecondsEnd ? value * 1_000 : value) * 1_000n;
}

/** Converts a date to days since 1970. */
export function daysOf(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / 86_400_000;
}
