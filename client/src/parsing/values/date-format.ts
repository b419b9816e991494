import { FileError } from '../file-error.ts';

type Token = { readonly literal: string } | { readonly part: string };

/**
 * Converts dates and times in an exported file to ISO 8601. Returns undefined if the text does not match the format, and
 * null if it does but the day or time does not exist.
 */
export type DateReader = (cell: string, wants: 'date' | 'date-time') => string | null | undefined;

const parts = /yyyy|MMM|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|SSS|a|X+|'([^']*)'|[A-Za-z]+|[^A-Za-z']+/g;
const known = new Set([
  'yyyy',
  'MMM',
  'MM',
  'M',
  'dd',
  'd',
  'HH',
  'H',
  'hh',
  'h',
  'mm',
  'm',
  'ss',
  's',
  'SSS',
  'a',
]);
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const offset = /^(Z|[+-]\d\d(:?\d\d)?)/;
const isoTime = /^[ T](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)? ?(Z|[+-]\d\d(?::?\d\d)?)?$/;

/**
 * Compiles a `--date-format` such as dd/MM/yyyy. A format without a time also accepts cells that have one (14/03/2026
 * 09:26), and a format with a time also accepts cells that have only a date, because exports contain both kinds of columns.
 * A time without an offset is taken as UTC, as in the service.
 */
export function dateReader(format: string): DateReader {
  const tokens = tokensOf(format);
  const lastDate = tokens.findLastIndex((token) => 'part' in token && /^[yMd]/.test(token.part));
  const hasTime = tokens.some((token) => 'part' in token && /^[Hhms]/.test(token.part));
  return (cell, wants) => {
    const found = new Found();
    let at = 0;
    for (const [index, token] of tokens.entries()) {
      if (at === cell.length && index > lastDate) break;
      at = 'literal' in token ? skip(cell, at, token.literal) : found.read(token.part, cell, at);
      if (at < 0) return undefined;
    }
    if (at < cell.length && (hasTime || !found.readIsoTime(cell.slice(at)))) return undefined;
    if (!found.isReal()) return null;
    // Midnight of a day in a time zone is a time of the day before or after it.
    return wants === 'date' && !found.isMidnight() ? undefined : found.text(wants);
  };
}

function tokensOf(format: string): Token[] {
  const tokens = [...format.matchAll(parts)].map(([text, quoted]): Token => {
    if (quoted !== undefined) return { literal: quoted };
    if (known.has(text) || text.startsWith('X')) return { part: text };
    if (/[A-Za-z]/.test(text)) {
      const why =
        text === 'yy' ? 'a two-digit year has no century' : `"${text}" is not part of a date format`;
      throw new FileError(
        `the date format ${format} cannot be used: ${why}; use yyyy, MM or MMM, dd, HH or hh with a, mm, ss, SSS, X`,
      );
    }
    return { literal: text };
  });
  for (const needed of ['y', 'M', 'd'])
    if (!tokens.some((token) => 'part' in token && token.part.startsWith(needed)))
      throw new FileError(`the date format ${format} needs a year, a month and a day, such as dd/MM/yyyy`);
  return tokens;
}

function skip(cell: string, at: number, literal: string): number {
  return cell.startsWith(literal, at) ? at + literal.length : -1;
}

class Found {
  #year = 0;
  #month = 0;
  #day = 0;
  #hour = 0;
  #minute = 0;
  #second = 0;
  #fraction = '';
  #offset = 'Z';

  /** Matches one part of the format. Returns the position in the cell after the match, or -1 if there is no match. */
  read(part: string, cell: string, at: number): number {
    if (part === 'MMM') return this.#readMonthName(cell, at);
    if (part === 'a') return this.#readHalf(cell, at);
    if (part.startsWith('X')) return this.#readOffset(cell, at);
    const digitsMax = part.length === 1 ? 2 : part.length;
    let end = at;
    while (end < at + digitsMax && cell.charCodeAt(end) >= 0x30 && cell.charCodeAt(end) <= 0x39) end++;
    if (end === at || (part.length > 1 && end !== at + digitsMax)) return -1;
    const digits = cell.slice(at, end);
    const first = part[0];
    if (first === 'y') this.#year = Number(digits);
    else if (first === 'M') this.#month = Number(digits);
    else if (first === 'd') this.#day = Number(digits);
    else if (first === 'H' || first === 'h') this.#hour = Number(digits);
    else if (first === 'm') this.#minute = Number(digits);
    else if (first === 's') this.#second = Number(digits);
    else this.#fraction = `.${digits}`;
    return end;
  }

  #readMonthName(cell: string, at: number): number {
    this.#month = months.indexOf(cell.slice(at, at + 3).toLowerCase()) + 1;
    return this.#month > 0 ? at + 3 : -1;
  }

  #readHalf(cell: string, at: number): number {
    const half = cell.slice(at, at + 2).toLowerCase();
    if ((half !== 'am' && half !== 'pm') || this.#hour < 1 || this.#hour > 12) return -1;
    this.#hour = (this.#hour % 12) + (half === 'pm' ? 12 : 0);
    return at + 2;
  }

  #readOffset(cell: string, at: number): number {
    const text = offset.exec(cell.slice(at))?.[0];
    if (text === undefined) return -1;
    this.#offset = text;
    return at + text.length;
  }

  readIsoTime(rest: string): boolean {
    const time = isoTime.exec(rest);
    if (time === null) return false;
    this.#hour = Number(time[1]);
    this.#minute = Number(time[2]);
    this.#second = Number(time[3] ?? 0);
    this.#fraction = time[4] ?? '';
    this.#offset = time[5] ?? 'Z';
    return true;
  }

  isReal(): boolean {
    if (this.#hour > 23 || this.#minute > 59 || this.#second > 59 || this.#day < 1 || this.#year < 1)
      return false;
    return this.#month >= 1 && this.#month <= 12 && this.#day <= daysOf(this.#year, this.#month);
  }

  isMidnight(): boolean {
    return this.#hour + this.#minute + this.#second === 0 && !/[1-9]/.test(this.#fraction);
  }

  text(wants: 'date' | 'date-time'): string {
    const date = `${String(this.#year).padStart(4, '0')}-${two(this.#month)}-${two(this.#day)}`;
    if (wants === 'date') return date;
    const time = `${two(this.#hour)}:${two(this.#minute)}:${two(this.#second)}${this.#fraction}`;
    return `${date}T${time}${this.#offset}`;
  }
}

function two(number: number): string {
  return number < 10 ? `0${number}` : String(number);
}

/** Returns the number of days in a month. Months are numbered from 1. */
export function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
