/** Numbers are sent as JSON, and JavaScript keeps 15 to 17 digits of them. The service's exports have nine decimals. */
const digitsKept = 15;
const decimals = 9;

export const inexact = {
  code: 'out_of_range',
  message: 'has more digits than can be stored; round it to 15 digits or fewer',
} as const;

/** Returns whether a number keeps its value when it is read from this text, such as -1234.50 or 1e3. */
export function isExact(text: string, number: number): boolean {
  if (text.length <= digitsKept) return true;
  const digits = significant(text);
  if (digits.length <= digitsKept || digits === significant(String(number))) return true;
  return rounded(text) === rounded(number.toFixed(decimals + 3));
}

/** Returns the digits without leading and trailing zeros. */
function significant(text: string): string {
  return text
    .replace(/e.*$/i, '')
    .replace(/[^0-9]/g, '')
    .replace(/^0+|0+$/g, '');
}

/** Returns the number rounded to nine decimals, as an integer. Numbers with an exponent have no such form. */
function rounded(text: string): bigint | undefined {
  const [, sign, whole = '0', fraction = ''] = /^([+-]?)(\d*)\.?(\d*)$/.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const kept = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
  const up = (fraction[decimals] ?? '0') >= '5' ? 1n : 0n;
  return sign === '-' ? -(kept + up) : kept + up;
}
