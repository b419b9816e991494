import type { FieldSchema } from '../../generated/schemas.ts';
import { type DateReader, dateReader } from './date-format.ts';
import { deriveId, namedBy, userField } from './derived-id.ts';
import { inexact, isExact } from './exact-number.ts';

export interface ConvertOptions {
  /** The date format, such as dd/MM/yyyy. ISO 8601 is always accepted. */
  readonly dateFormat?: string | undefined;
  /** Whether numbers are written as 1.234,50 instead of 1234.50. */
  readonly decimalComma?: boolean | undefined;
  /** Whether numbers are written as 1,234.50 instead of 1234.50. */
  readonly thousands?: boolean | undefined;
  /** The key columns from which ids are derived. */
  readonly idFrom?: readonly string[] | undefined;
  /** Whether user ids are sent unchanged although other ids are derived. In interactions, they can be any text. */
  readonly keepsUserIds?: boolean | undefined;
}

/** Why a cell cannot be converted to its field's type. */
export interface CellProblem {
  readonly code: string;
  readonly message: string;
}

export type Scalar = string | number | boolean;
/** Converts a non-empty cell to its field's type. Returns undefined if the cell contains only spaces. */
export type Convert = (cell: string) => Scalar | CellProblem | undefined;

/** Returns the converter for a field's cells, or undefined if they are sent unchanged. */
export function converterOf(
  field: string,
  schema: FieldSchema,
  options: ConvertOptions,
): Convert | undefined {
  const { format } = schema;
  if (typeIs(schema, 'number')) return trimmed(numberReader(options));
  if (typeIs(schema, 'boolean')) return trimmed(readBoolean);
  if (format === 'uuid' || derivesFrom(field, options)) return uuidConverter(field, options);
  if (format !== 'date' && format !== 'date-time') return undefined;
  const convert = dateConverter(format, options.dateFormat);
  return typeIs(schema, 'integer') ? eventTimeConverter(convert, options.dateFormat) : convert;
}

/**
 * Returns the converter for a field's JSON values. They already have a type, so they are converted only if an option
 * requires it.
 */
export function jsonConverterOf(
  field: string,
  schema: FieldSchema,
  options: ConvertOptions,
): Convert | undefined {
  const { format } = schema;
  const isAsked =
    ((options.decimalComma || options.thousands) && typeIs(schema, 'number')) ||
    (options.idFrom && format === 'uuid') ||
    derivesFrom(field, options) ||
    (options.dateFormat && (format === 'date' || format === 'date-time'));
  return isAsked ? converterOf(field, schema, options) : undefined;
}

function typeIs({ type }: FieldSchema, wanted: string): boolean {
  return typeof type === 'string' ? type === wanted : type.includes(wanted);
}

/**
 * Returns a converter that trims a cell first. It checks whether trimming is necessary, because most cells have no
 * surrounding spaces and checking is cheaper than trimming.
 */
function trimmed(convert: Convert): Convert {
  return (cell) => {
    if (cell.charCodeAt(0) > 0x20 && cell.charCodeAt(cell.length - 1) > 0x20) return convert(cell);
    const text = cell.trim();
    return text === '' ? undefined : convert(text);
  };
}

const notNumber: CellProblem = {
  code: 'wrong_type',
  message:
    'must be a number such as 1234.5, without a currency; add --thousands if it is written 1,234.5, or --decimal-comma if it is written 1234,5',
};

function numberReader({ decimalComma, thousands }: ConvertOptions): Convert {
  if (decimalComma) return readDecimalComma;
  return thousands ? readThousands : readNumber;
}

function readNumber(cell: string): number | CellProblem {
  const number = Number(cell);
  // JavaScript also accepts 0x1F, 0b1 and 0o7, but in an exported file these are not numbers.
  if (!Number.isFinite(number) || (cell.charCodeAt(1) > 0x39 && /^0[xob]/i.test(cell))) return notNumber;
  return exactly(cell, number);
}

const decimalComma = /^[+-]?(\d+|\d{1,3}([. \u00a0\u202f']\d{3})+)(,\d+)?$/;
const notDecimalComma: CellProblem = {
  code: 'wrong_type',
  message: 'must be a number with a decimal comma such as 1234,5 or 1.234,5, without a currency',
};

/**
 * Reads a number with a decimal comma. A point is accepted only between groups of three digits. Otherwise 12.5 would
 * silently become 125.
 */
function readDecimalComma(cell: string): number | CellProblem {
  if (!decimalComma.test(cell)) return notDecimalComma;
  const plain = cell.replace(/[. \u00a0\u202f']/g, '').replace(',', '.');
  return exactly(plain, Number(plain));
}

const thousandsGroups = /^[+-]?(\d+|\d{1,3}([, \u00a0\u202f']\d{3})+)(\.\d+)?$/;
const notThousands: CellProblem = {
  code: 'wrong_type',
  message: 'must be a number such as 1234.5 or 1,234.5, without a currency',
};

/**
 * Reads a number with commas between thousands. A comma is accepted only between groups of three digits. Otherwise 12,5
 * would silently become 125.
 */
function readThousands(cell: string): number | CellProblem {
  if (!thousandsGroups.test(cell)) return notThousands;
  const plain = cell.replace(/[, \u00a0\u202f']/g, '');
  return exactly(plain, Number(plain));
}

function exactly(text: string, number: number): number | CellProblem {
  return isExact(text, number) ? number : inexact;
}

const booleans = new Map<string, boolean>([
  ...['true', 'yes', 'y', 't', '1'].map((word) => [word, true] as const),
  ...['false', 'no', 'n', 'f', '0'].map((word) => [word, false] as const),
]);
const notBoolean: CellProblem = {
  code: 'wrong_type',
  message: 'must be true or false (yes, no, y, n, t, f, 1 and 0 are accepted too)',
};

function readBoolean(cell: string): boolean | CellProblem {
  return booleans.get(cell) ?? booleans.get(cell.toLowerCase()) ?? notBoolean;
}

/** Returns whether a field's ids are derived from its cells. An item's id is derived later, once the item's type is known. */
function derivesFrom(field: string, { idFrom, keepsUserIds }: ConvertOptions): boolean {
  return idFrom !== undefined && namedBy(field) !== undefined && !(keepsUserIds && field === userField);
}

function uuidConverter(field: string, options: ConvertOptions): Convert {
  const named = derivesFrom(field, options) ? namedBy(field) : undefined;
  return trimmed(named === undefined ? (cell) => cell : (cell) => deriveId(named, [cell]));
}

function dateConverter(wants: 'date' | 'date-time', format: string | undefined): Convert {
  const read: DateReader | undefined = format === undefined ? undefined : dateReader(format);
  const isoOf = wants === 'date' ? isoDate : isoDateTime;
  const example = wants === 'date' ? '2004-02-29' : '2026-03-14T09:26:53Z';
  const problem: CellProblem = {
    code: 'invalid_format',
    message:
      format === undefined
        ? `must be written as ${example}; add --date-format, such as --date-format dd/MM/yyyy, if the file has another form`
        : `must be a date written as ${format}, as set by --date-format, or as ${example}`,
  };
  const unreal: CellProblem = {
    code: 'invalid_format',
    message: `is not a valid date or time in the format ${format}; check it, or --date-format`,
  };
  // If the format is yyyy-dd-MM, a date that does not match it must not be read as ISO 8601, because that would swap the day
  // and the month.
  const readsIso = format === undefined || !/^yyyy-(?!MM-dd)/.test(format);
  return trimmed((cell) => {
    const asFormat = read?.(cell, wants);
    if (typeof asFormat === 'string') return asFormat;
    const isIso = readsIso && cell.charCodeAt(4) === 0x2d /* - */ && cell.charCodeAt(7) === 0x2d;
    return isIso ? isoOf(cell) : asFormat === null ? unreal : problem;
  });
}

const epoch = /^\d{1,15}$/;
/** Matches days and times such as 20260314 and 20260314092653, and the days since 1900 of a spreadsheet, from 2009 to 2064. */
const otherDigits =
  /^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?$|^[45]\d{4}$/;

const unclearDigits: CellProblem = {
  code: 'invalid_format',
  message:
    'would be in another century if it were epoch seconds or milliseconds; add --date-format yyyyMMdd or yyyyMMddHHmmss if it is a date, or write it as ISO 8601',
};

/**
 * Returns a converter for event times. It tries the date format first, because 20260314 may be a date rather than an epoch
 * number. If dates in the format consist of digits, digits are never an epoch number: 20260231 would become a day in 1970.
 */
function eventTimeConverter(convert: Convert, format: string | undefined): Convert {
  const readsEpoch = format === undefined || /[^yMdHhmsS]|MMM/.test(format);
  return trimmed((cell) => {
    const date = convert(cell);
    if (typeof date !== 'object' || !readsEpoch) return date;
    if (otherDigits.test(cell)) return unclearDigits;
    if (epoch.test(cell)) return Number(cell);
    return { ...date, message: `${date.message}; whole epoch seconds and milliseconds are accepted too` };
  });
}

/** Removes midnight from a date. Databases write a date as 2004-02-29 00:00:00 if the column's type includes a time. */
function isoDate(cell: string): string {
  return cell.length > 10 && /^[ T]00:00(:00(\.0+)?)?(Z|\+00(:?00)?)?$/.test(cell.slice(10))
    ? cell.slice(0, 10)
    : cell;
}

/** Completes a date-time. Databases write a space instead of the T, and spreadsheets omit the time at midnight. */
function isoDateTime(cell: string): string {
  if (cell.length === 10) return `${cell}T00:00:00Z`;
  return cell.charCodeAt(10) === 0x20 ? isoWithSpace(cell) : cell;
}

/**
 * Replaces the space before the time with a T, and removes the space that some programs put before the offset. PostgreSQL
 * writes the offset as +00.
 */
function isoWithSpace(cell: string): string {
  return `${cell.slice(0, 10)}T${cell.slice(11).replace(' ', '')}`;
}
