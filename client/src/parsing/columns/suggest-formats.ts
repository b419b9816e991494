import type { UploadType } from '../../generated/resources.ts';
import { type FieldSchema, schemas } from '../../generated/schemas.ts';
import { type ConvertOptions, converterOf } from '../values/convert-cell.ts';

/** The cells of one column, and the field that the column is mapped to. */
interface Sample {
  readonly column: string;
  readonly field: string;
  readonly schema: FieldSchema;
  readonly cells: readonly string[];
}

export interface SuggestedFormats {
  date_format?: string;
  decimal_comma?: true;
  thousands?: true;
  values?: Record<string, Record<string, string | boolean>>;
}

/** The date formats that are tried, in this order. Each of them also reads cells with a time. */
const dayFirst = [
  'dd.MM.yyyy',
  'dd/MM/yyyy',
  'dd-MM-yyyy',
  'dd MMM yyyy',
  'd.M.yyyy',
  'd/M/yyyy',
  'd-M-yyyy',
];
const monthFirst = ['MM/dd/yyyy', 'MM-dd-yyyy', 'MM.dd.yyyy', 'M/d/yyyy', 'M-d-yyyy', 'M.d.yyyy'];
const yearFirst = ['yyyy/MM/dd', 'yyyy.MM.dd', 'yyyyMMdd'];

const words = new Map<string, boolean>([
  ...['ja', 'j', 'wahr', 'oui', 'vrai', 'sí', 'si', 'sì', 'x', 'on'].map((word) => [word, true] as const),
  ...['nein', 'falsch', 'non', 'faux', 'off', '-'].map((word) => [word, false] as const),
]);

/**
 * Suggests how to read a file's cells, each with its reason. Suggests nothing that only some of the cells confirm, or that they
 * contradict, and says what the user has to decide.
 */
export function suggestFormats(
  type: UploadType,
  columns: Readonly<Record<string, string>>,
  cellsOf: (column: string) => readonly string[],
): { readonly formats: SuggestedFormats; readonly reasons: readonly string[] } {
  const formats: SuggestedFormats = {};
  const reasons: string[] = [];
  const samples = Object.entries(columns).flatMap(([column, field]): Sample[] => {
    const schema = Object.hasOwn(schemas[type].properties, field)
      ? schemas[type].properties[field]
      : undefined;
    const cells = cellsOf(column).filter((cell) => cell.trim() !== '');
    return schema === undefined ? [] : [{ column, field, schema, cells }];
  });
  const dates = samples.filter(({ schema }) => schema.format?.startsWith('date') === true);
  const unreadDate = firstUnread(dates, {});
  if (unreadDate !== undefined) {
    const fitting = [...dayFirst, ...yearFirst, ...monthFirst].filter(
      (dateFormat) => firstUnread(dates, { dateFormat }) === undefined,
    );
    const [format] = fitting;
    const isClear = !(
      fitting.some((one) => dayFirst.includes(one)) && fitting.some((one) => monthFirst.includes(one))
    );
    if (format !== undefined && isClear) formats.date_format = format;
    const why = isClear ? 'no known date format reads all of them' : 'the day or the month may come first';
    reasons.push(reasonFor('date_format', isClear ? format : undefined, unreadDate, why));
  }
  const numbers = samples.filter(({ schema }) => [schema.type].flat().includes('number'));
  const unreadNumber = firstUnread(numbers, {});
  if (unreadNumber !== undefined) {
    const isComma = firstUnread(numbers, { decimalComma: true }) === undefined;
    const isThousands = firstUnread(numbers, { thousands: true }) === undefined;
    if (isComma && !isThousands) formats.decimal_comma = true;
    if (isThousands && !isComma) formats.thousands = true;
    const name = isThousands && !isComma ? 'thousands' : 'decimal_comma';
    const why = isComma
      ? 'the comma may also separate thousands'
      : 'neither decimal_comma nor thousands reads all of them';
    reasons.push(reasonFor(name, isComma === isThousands ? undefined : true, unreadNumber, why));
  }
  const unclear = unreadNumber === undefined ? numbers.find(hasOnlyThousandths) : undefined;
  if (unclear !== undefined)
    reasons.push(
      `column "${unclear.column}" has ${JSON.stringify(unclear.cells.find((cell) => cell.includes('.')))}, in which the point is read as a decimal point; set "decimal_comma" if it separates thousands`,
    );
  for (const sample of samples) {
    const values = valuesOf(sample);
    if (values === undefined) continue;
    formats.values = { ...formats.values, [sample.column]: values };
    reasons.push(reasonFor('values', values, { ...sample, cell: Object.keys(values)[0] as string }, ''));
  }
  return { formats, reasons };
}

/** Returns whether all points are before three last digits, as between thousands. */
function hasOnlyThousandths({ cells }: Sample): boolean {
  const points = cells.filter((cell) => cell.includes('.'));
  return points.length > 0 && points.every((cell) => /^[+-]?[1-9]\d{0,2}\.\d{3}$/.test(cell.trim()));
}

/** Returns the first cell that cannot be converted with these options. */
function firstUnread(samples: readonly Sample[], options: ConvertOptions) {
  for (const { column, field, schema, cells } of samples) {
    const convert = converterOf(field, schema, options);
    const cell = cells.find((each) => typeof convert?.(each) === 'object');
    if (cell !== undefined) return { column, cell };
  }
  return undefined;
}

function reasonFor(
  option: string,
  value: unknown,
  { column, cell }: { readonly column: string; readonly cell: string },
  why: string,
): string {
  const found = `column "${column}" has ${JSON.stringify(cell)}`;
  return value === undefined
    ? `${found}, but ${why}; set "${option}" yourself`
    : `"${option}": ${JSON.stringify(value)}, because ${found}`;
}

/** Returns the values to replace in a column of booleans or country codes, if all its other cells can be read. */
function valuesOf({ field, schema, cells }: Sample): Record<string, string | boolean> | undefined {
  const isBoolean = [schema.type].flat().includes('boolean');
  const isCountry = schema.pattern === '^[A-Za-z]{2}$';
  if (!isBoolean && !isCountry) return undefined;
  const convert = converterOf(field, schema, {});
  const isRead = (cell: string) =>
    isBoolean ? typeof convert?.(cell) === 'boolean' : /^[A-Za-z]{2}$/.test(cell);
  const unread = [...new Set(cells.map((cell) => cell.trim()))].filter((cell) => !isRead(cell));
  const known = isBoolean ? words : countryNames();
  const found = unread.map((cell) => [cell, known.get(cell.toLowerCase())] as const);
  if (found.length === 0 || found.some(([, value]) => value === undefined)) return undefined;
  return Object.fromEntries(found as (readonly [string, string | boolean])[]);
}

/** Returns the codes of countries by their names in a few languages, in lower case. */
function countryNames(): Map<string, string> {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  const codes = letters.flatMap((one) => letters.map((two) => one + two));
  const names = new Map<string, string>();
  for (const language of ['en', 'de', 'fr', 'es', 'it']) {
    const namesIn = new Intl.DisplayNames(language, { type: 'region', fallback: 'none' });
    // The first code wins, because some withdrawn codes have the name of a country: DD is shown as Germany.
    for (const code of codes) {
      const name = namesIn.of(code)?.toLowerCase();
      if (
        name !== undefined &&
        Intl.getCanonicalLocales(`und-${code}`)[0] === `und-${code}` &&
        !names.has(name)
      )
        names.set(name, code);
    }
  }
  return names;
}
