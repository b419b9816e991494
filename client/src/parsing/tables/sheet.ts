import type { UploadType } from '../../generated/resources.ts';
import { type ColumnPlan, convertRow, keysOf, type Problem, planColumns } from '../columns/plan-columns.ts';
import { FileError } from '../file-error.ts';
import type { FileFailure, FileOptions, FileRecord, OpenedTable } from '../opened-file.ts';

const rowsPerChunk = 500;
/**
 * The maximum size of a file, because a sheet is read into memory. A file of this size has about 200,000 rows, which take
 * 600 MB.
 */
const bytesMax = 10 * 1_048_576;

export type SheetRow = readonly unknown[];

export function checkSheetSize(bytes: number): void {
  if (bytes > bytesMax)
    throw new FileError(
      `it is larger than ${bytesMax / 1_048_576} MiB, and a spreadsheet has to fit in memory; save the sheet as CSV`,
    );
}

/** Returns the settings with which the spreadsheet library converts cells. */
export function cellReading({ decimalComma }: FileOptions) {
  // Numbers are stored with a decimal point, no matter how the spreadsheet displays them.
  const parseNumber = (text: string) => (decimalComma ? text.replace('.', ',') : text);
  return { parseNumber, trim: false };
}

/** Reads a sheet's rows. The first non-empty row is the header. */
export function openSheet(
  rows: readonly SheetRow[],
  bytes: number,
  type: UploadType,
  options: FileOptions,
): OpenedTable {
  const headerAt = rows.findIndex(isFilled);
  if (headerAt < 0)
    throw new FileError('its first sheet is empty; it needs a header with the names of the fields');
  const header = (rows[headerAt] as SheetRow).map((cell) => textOf(cell).trim());
  const plan = planColumns(type, header, options);
  const isFine = rows.some((row) => row.some((cell) => cell instanceof Date && isFineTime(cell)));
  let rowsRead = 0;
  return {
    bytes,
    bytesRead: () => Math.round((bytes * rowsRead) / rows.length),
    header,
    plan,
    close: async () => {},
    async *chunks() {
      let toSkip = options.skipRecords ?? 0;
      let chunk: { records: FileRecord[]; failures: FileFailure[] } = { records: [], failures: [] };
      for (const [at, row] of rows.entries()) {
        rowsRead = at + 1;
        if (at <= headerAt || !isFilled(row) || toSkip-- > 0) continue;
        addRow(chunk, { plan, header, isFine }, row, at + 1);
        if (chunk.records.length + chunk.failures.length < rowsPerChunk) continue;
        yield chunk;
        chunk = { records: [], failures: [] };
      }
      yield chunk;
    },
  };
}

interface SheetForm {
  readonly plan: ColumnPlan;
  readonly header: readonly string[];
  /** Whether some times have milliseconds. */
  readonly isFine: boolean;
}

function addRow(
  { records, failures }: { records: FileRecord[]; failures: FileFailure[] },
  { plan, header, isFine }: SheetForm,
  row: SheetRow,
  line: number,
): void {
  const cells = header.map((_, index) => textOf(row[index]));
  const { record, problems } = convertRow(plan, cells);
  const unclear = plan.columns.flatMap(({ index, column, field }): Problem[] => {
    const cell = row[index];
    const message = cell instanceof Date ? unclearIn(cell, isFine) : undefined;
    return message === undefined ? [] : [{ column, field, code: 'invalid_format', message }];
  });
  if (unclear.length > 0)
    failures.push({ line, problems: [...(problems ?? []), ...unclear].slice(0, 5), record });
  else if (problems === undefined) records.push({ line, record, keys: keysOf(plan, cells) });
  else failures.push({ line, problems, record });
}

/** The spreadsheet library cuts fractions of a millisecond off, so a whole second may come out a millisecond too low. */
function isFineTime(date: Date): boolean {
  const digit = Math.abs(date.getTime() % 10);
  return digit !== 0 && digit !== 9;
}

/** Returns why a date cannot be read exactly, or undefined. */
function unclearIn(date: Date, isFine: boolean): string | undefined {
  if (date.getTime() < firstDayMs)
    return 'is a duration, a time without a date, or a date before March 1900, which spreadsheets do not store; write it as text, such as 1900-01-31';
  const ms = date.getTime() % 1_000;
  if (isFine && ms !== 0 && ms !== 999)
    return 'has milliseconds, which cannot be read exactly from a spreadsheet; save the sheet as CSV';
  return undefined;
}

/** Spreadsheets count days from 1900 as if that had been a leap year, so earlier dates are off by a day. */
const firstDayMs = Date.UTC(1900, 2, 1);

function isFilled(row: SheetRow): boolean {
  return row.some((cell) => textOf(cell).trim() !== '');
}

function textOf(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return cell instanceof Date ? isoOf(cell) : String(cell);
}

/** Formats a date as ISO 8601, rounded to 10 ms. Finer times are refused. */
function isoOf(date: Date): string {
  const ms = date.getTime();
  return new Date(ms % 10 === 9 ? ms + 1 : ms).toISOString();
}

export function explainSheet(error: Error): never {
  throw new FileError(
    `it cannot be read as a spreadsheet (${error.message}); save it again as .xlsx, or save the sheet as CSV`,
  );
}
