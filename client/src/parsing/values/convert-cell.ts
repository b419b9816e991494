import type { FieldSchema } from '../../generated/schemas.ts';
import { type DateReader, dateReader } from './date-format.ts';
import { deriveId, itemField, namedBy } from './derived-id.ts';

export interface ConvertOptions {
  /** The format of dates, such as dd/MM/yyyy; ISO 8601 is always read. */
  readonly dateFormat?: string | undefined;
  /** 1.234,50 instead of 1234.50. */
  readonly decimalComma?: boolean | undefined;
  /** 1,234.50 instead of 1234.50. */
  readonly thousands?: boolean | undefined;
  /** The key columns from which ids are derived. */
  readonly idFrom?: readonly string[] | undefined;
}

/** Why a cell cannot be converted to its field's type. */
export interface CellProblem {
  readonly code: string;
  readonly message: string;
}

export type Scalar = string | number | boolean;
/** Converts a cell that is not empty to its field's type; undefined if it holds only spaces. */
export type Convert = (cell: string) => Scalar | CellProblem | undefined;

/** Converts the cells of this field; undefined if they are sent unchanged. */
export function converterOf(
  field: string,
  schema: FieldSchema,
  options: ConvertOptions,
): Convert | undefined {
  const { format } = schema;
  if (typeIs(schema, 'number')) return trimmed(numberReader(options));
  if (typeIs(schema, 'boolean')) return trimmed(readBoolean);
  if (format === 'uuid') return uuidConverter(field, options);
  if (format !== 'date' && format !== 'date-time') return undefined;
  const convert = dateConverter(format, options.dateFormat);
  return typeIs(schema, 'integer') ? eventTimeConverter(convert) : convert;
}

/** JSON values have a type already, so they are converted only if an option asks for it. */
export function jsonConverterOf(
  field: string,
  schema: FieldSchema,
  options: ConvertOptions,
): Convert | undefined {
  const { format } = schema;
  const isAsked =
    ((options.decimalComma || options.thousands) && typeIs(schema, 'number')) ||
    (options.idFrom && format === 'uuid') ||
    (options.dateFormat && (format === 'date' || format === 'date-time'));
  return isAsked ? converterOf(field, schema, options) : undefined;
}

function typeIs({ type }: FieldSchema, wanted: string): boolean {
  return typeof type === 'string' ? type === wanted : type.includes(wanted);
}

/** Most cells have no space around them, and checking is cheaper than trimming. */
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
  // JavaScript also reads 0x1F, 0b1 and 0o7, which an export never means.
  if (!Number.isFinite(number) || (cell.charCodeAt(1) > 0x39 && /^0[xob]/i.test(cell))) return notNumber;
  return number;
}

const decimalComma = /^[+-]?(\d+|\d{1,3}([. \u00a0\u202f']\d{3})+)(,\d+)?$/;
const notDecimalComma: CellProblem = {
  code: 'wrong_type',
  message: 'must be a number with a decimal comma such as 1234,5 or 1.234,5, without a currency',
};

/** A point is accepted only between groups of three digits: otherwise 12.5 would silently become 125. */
function readDecimalComma(cell: string): number | CellProblem {
  if (!decimalComma.test(cell)) return notDecimalComma;
  return Number(cell.replace(/[. \u00a0\u202f']/g, '').replace(',', '.'));
}

const thousandsGroups = /^[+-]?(\d+|\d{1,3}([, \u00a0\u202f']\d{3})+)(\.\d+)?$/;
const notThousands: CellProblem = {
  code: 'wrong_type',
  message: 'must be a number such as 1234.5 or 1,234.5, without a currency',
};

/** A comma is accepted only between groups of three digits: otherwise 12,5 would silently become 125. */
function readThousands(cell: string): number | CellProblem {
  return thousandsGroups.test(cell) ? Number(cell.replace(/[, \u00a0\u202f']/g, '')) : notThousands;
}

const booleans = new Map<string, boolean>([
  ...['true', 'yes', 'y', 't', '1'].map((word) => [word, true] as const),
  ...['false', 'no', 'n', 'f', '0'].map((word) => [word, false] as const),
]);
const notBoolean: CellProblem = {
  code: 'wrong_type',
  message: 'must be true or false (yes, no, y, n, t, f, 1 and 0 are read too)',
};

function readBoolean(cell: string): boolean | CellProblem {
  return booleans.get(cell) ?? booleans.get(cell.toLowerCase()) ?? notBoolean;
}

function uuidConverter(field: string, { idFrom }: ConvertOptions): Convert {
  // An item is derived when the type of the item is known.
  if (idFrom === undefined || field === itemField) return trimmed((cell) => cell);
  const named = namedBy(field);
  return trimmed((cell) => deriveId(named, [cell]));
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
        : `must be a date written as ${format}, as --date-format says, or as ${example}`,
  };
  const unreal: CellProblem = {
    code: 'invalid_format',
    message: `names no day or time that there is, read as ${format}; check it, or --date-format`,
  };
  // With yyyy-dd-MM, an invalid day must not be taken for a month.
  const readsIso = format === undefined || !/^yyyy-(?!MM-dd)/.test(format);
  return trimmed((cell) => {
    const asFormat = read?.(cell, wants);
    if (typeof asFormat === 'string') return asFormat;
    const isIso = readsIso && cell.charCodeAt(4) === 0x2d /* - */ && cell.charCodeAt(7) === 0x2d;
    return isIso ? isoOf(cell) : asFormat === null ? unreal : problem;
  });
}

const epoch = /^\d{1,15}$/;

/** The format of dates comes first, because 20260314 may be a day. */
function eventTimeConverter(convert: Convert): Convert {
  return trimmed((cell) => {
    const date = convert(cell);
    if (typeof date !== 'object') return date;
    if (epoch.test(cell)) return Number(cell);
    return { ...date, message: `${date.message}; whole epoch seconds and milliseconds are read too` };
  });
}

/** Databases write a day as 2004-02-29 00:00:00 if the column may have a time. */
function isoDate(cell: string): string {
  return cell.length > 10 && /^[ T]00:00(:00(\.0+)?)?(Z|\+00(:?00)?)?$/.test(cell.slice(10))
    ? cell.slice(0, 10)
    : cell;
}

/** Databases write a space instead of the T, and spreadsheets leave out midnight. */
function isoDateTime(cell: string): string {
  if (cell.length === 10) return `${cell}T00:00:00Z`;
  return cell.charCodeAt(10) === 0x20 ? isoWithSpace(cell) : cell;
}

/** PostgreSQL also writes the offset as +00; others put a space before it. */
function isoWithSpace(cell: string): string {
  return `${cell.slice(0, 10)}T${cell.slice(11).replace(' ', '')}`;
}
