/** The 17 digits of a double spread over five groups of four at the most; empty groups around them are not written. */
export const numericBytesMax = 8 + 2 * 5;

/**
 * Writes the shortest decimal of a double as PostgreSQL's numeric, and returns where it ends: a sign, and groups of four digits of which the first weighs 10000^weight.
 * An amount with at most four decimals, nearly every one, needs no detour through text: below 10^15 no two decimals of
 * that length are the same double, so what divides back to the value is its shortest form.
 */
export function writeNumeric(buffer: Buffer, value: number, at: number): number {
  const size = Math.abs(value);
  const scaled = Math.round(size * 10_000);
  if (scaled < 1e15 && scaled / 10_000 === size) return writeShortNumeric(buffer, scaled, value < 0, at);
  return writeLongNumeric(buffer, value, at);
}

function writeShortNumeric(buffer: Buffer, scaled: number, negative: boolean, at: number): number {
  const fraction = scaled % 10_000;
  const whole = (scaled - fraction) / 10_000;
  let next = at + 8;
  let weight = -1;
  if (whole > 0) {
    weight = whole < 1e4 ? 0 : whole < 1e8 ? 1 : 2;
    if (weight === 2) next = buffer.writeInt16BE(Math.floor(whole / 1e8), next);
    if (weight >= 1) next = buffer.writeInt16BE(Math.floor(whole / 1e4) % 1e4, next);
    next = buffer.writeInt16BE(whole % 1e4, next);
  }
  if (fraction > 0) next = buffer.writeInt16BE(fraction, next);
  buffer.writeInt16BE((next - at - 8) / 2, at);
  buffer.writeInt16BE(weight, at + 2);
  buffer.writeUInt16BE(negative ? 0x4000 : 0, at + 4);
  buffer.writeInt16BE(decimalsOf(fraction), at + 6);
  return next;
}

function decimalsOf(fraction: number): number {
  if (fraction === 0) return 0;
  if (fraction % 10 !== 0) return 4;
  if (fraction % 100 !== 0) return 3;
  return fraction % 1000 !== 0 ? 2 : 1;
}

function writeLongNumeric(buffer: Buffer, value: number, at: number): number {
  const [mantissa = '', exponent] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  // The point stands after this many of the digits; groups are counted from it in both directions.
  const point = Number(exponent) + 1;
  const weight = Math.ceil(point / 4) - 1;
  const padded = '0'.repeat((weight + 1) * 4 - point) + digits;
  let next = at + 8;
  for (let from = 0; from < padded.length; from += 4) {
    next = buffer.writeInt16BE(Number(padded.slice(from, from + 4).padEnd(4, '0')), next);
  }
  buffer.writeInt16BE((next - at - 8) / 2, at);
  buffer.writeInt16BE(weight, at + 2);
  buffer.writeUInt16BE(value < 0 ? 0x4000 : 0, at + 4);
  buffer.writeUInt16BE(Math.max(0, digits.length - point), at + 6);
  return next;
}
