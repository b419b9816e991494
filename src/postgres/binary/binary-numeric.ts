/** The 17 digits of a double span at most five groups of four digits. Groups of zeros around them are not written. */
export const numericBytesMax = 8 + 2 * 5;

/**
 * Writes the shortest decimal form of a double: a sign and groups of four digits, the first of which is multiplied by
 * 10000^weight. Almost all amounts have at most four decimal places and need no conversion to text: below 10^15, no two
 * decimals of that length are the same double, so if such a decimal equals the value, it is its shortest form.
 */
export function writeNumeric(view: DataView, value: number, at: number): number {
  const size = Math.abs(value);
  const scaled = Math.round(size * 10_000);
  if (scaled < 1e15 && scaled / 10_000 === size) return writeShortNumeric(view, scaled, value < 0, at);
  return writeLongNumeric(view, value, at);
}

function writeShortNumeric(view: DataView, scaled: number, negative: boolean, at: number): number {
  const fraction = scaled % 10_000;
  const whole = (scaled - fraction) / 10_000;
  let next = at + 8;
  let weight = -1;
  if (whole > 0) {
    weight = whole < 1e4 ? 0 : whole < 1e8 ? 1 : 2;
    if (weight === 2) next = writeGroup(view, Math.floor(whole / 1e8), next);
    if (weight >= 1) next = writeGroup(view, Math.floor(whole / 1e4) % 1e4, next);
    next = writeGroup(view, whole % 1e4, next);
  }
  if (fraction > 0) next = writeGroup(view, fraction, next);
  view.setInt16(at, (next - at - 8) / 2);
  view.setInt16(at + 2, weight);
  view.setUint16(at + 4, negative ? 0x4000 : 0);
  view.setInt16(at + 6, decimalsOf(fraction));
  return next;
}

function writeGroup(view: DataView, digits: number, at: number): number {
  view.setInt16(at, digits);
  return at + 2;
}

function decimalsOf(fraction: number): number {
  if (fraction === 0) return 0;
  if (fraction % 10 !== 0) return 4;
  if (fraction % 100 !== 0) return 3;
  return fraction % 1000 !== 0 ? 2 : 1;
}

function writeLongNumeric(view: DataView, value: number, at: number): number {
  const [mantissa = '', exponent] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  // This is the number of digits before the decimal point. Groups are counted from the point in both directions.
  const point = Number(exponent) + 1;
  const weight = Math.ceil(point / 4) - 1;
  const padded = '0'.repeat((weight + 1) * 4 - point) + digits;
  let next = at + 8;
  for (let from = 0; from < padded.length; from += 4) {
    next = writeGroup(view, Number(padded.slice(from, from + 4).padEnd(4, '0')), next);
  }
  view.setInt16(at, (next - at - 8) / 2);
  view.setInt16(at + 2, weight);
  view.setUint16(at + 4, value < 0 ? 0x4000 : 0);
  view.setUint16(at + 6, Math.max(0, digits.length - point));
  return next;
}

/** Reads what `writeNumeric` has written. */
export function readNumeric(view: DataView, at: number): number {
  const groups = view.getInt16(at);
  const weight = view.getInt16(at + 2);
  let digits = '';
  for (let group = 0; group < groups; group++)
    digits += String(view.getInt16(at + 8 + 2 * group)).padStart(4, '0');
  const size = Number(`${digits || '0'}e${4 * (weight + 1 - groups)}`);
  return view.getUint16(at + 4) === 0 ? size : -size;
}
