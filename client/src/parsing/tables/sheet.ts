import type { UploadType } from '../../generated/resources.ts';
import {
  type ColumnPlan,
  convertRow,
  keysOf,
  type Problem,
  planColumns,
  withUnclear,
} from '../columns/plan-columns.ts';
import { refuseRecord, SkippedRows } from '../columns/skipped-rows.ts';
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

interface NamedSheet {
  readonly sheet: string;
  /** The library returns no rows for a sheet that is only a chart. */
  readonly data: readonly SheetRow[] | undefined;
}

/** Returns the rows of the sheet to read, and the other sheets with data if no sheet was specified. */
export function chooseSheet(sheets: readonly NamedSheet[], { sheet }: FileOptions) {
  const chosen =
    typeof sheet === 'string' ? sheets.find((one) => one.sheet === sheet) : sheets[(sheet ?? 1) - 1];
  const quoted = (names: readonly NamedSheet[]) => names.map((one) => `"${one.sheet}"`).join(', ');
  if (chosen === undefined)
    throw new FileError(`it has no sheet ${JSON.stringify(sheet)}; its sheets are ${quoted(sheets)}`);
  const others = sheets.filter((one) => one !== chosen && one.data?.some(isFilled));
  if (!chosen.data?.some(isFilled))
    throw new FileError(
      `its ${sheet === undefined ? 'first sheet' : `sheet "${chosen.sheet}"`} is empty; it needs a header with the names of the fields` +
        (others.length > 0 ? `. Specify "sheet" in a mapping file: ${quoted(others)} have data` : ''),
    );
  return {
    rows: chosen.data,
    otherSheets: sheet === undefined ? others.map((one) => one.sheet) : [],
  };
}

/** Reads a sheet's rows. The first non-empty row is the header, after the rows to skip. */
export function openSheet(
  sheets: readonly NamedSheet[],
  bytes: number,
  type: UploadType,
  options: FileOptions,
): OpenedTable {
  const { rows: all, otherSheets } = chooseSheet(sheets, options);
  const { skipTop = 0, skipBottom = 0 } = options;
  const filled = all.flatMap((row, at) => (isFilled(row) ? [at] : []));
  const rows = skipBottom > 0 ? all.slice(0, filled.at(-skipBottom) ?? 0) : all;
  const headerAt = rows.findIndex((row, at) => at >= skipTop && isFilled(row));
  if (headerAt < 0)
    throw new FileError('"skip_top" and "skip_bottom" leave no row for the header; check them');
  const header = (rows[headerAt] as SheetRow).map((cell) => textOf(cell).trim());
  const plan = planColumns(type, header, options);
  const skipped = new SkippedRows();
  for (const at of filled.filter((at) => at < headerAt || at >= rows.length)) {
    const cells = cellsOf(header, all[at] as SheetRow);
    if (at > headerAt) refuseRecord(plan, cells, `row ${at + 1}`);
    skipped.add(at + 1, cells);
  }
  const fine = new Set(plan.columns.map(({ index }) => index).filter((index) => hasFractions(rows, index)));
  let rowsRead = 0;
  return {
    bytes,
    bytesRead: () => Math.round((bytes * rowsRead) / rows.length),
    header,
    plan,
    otherSheets,
    skippedRows: () => skipped.list(),
    close: async () => {},
    async *chunks() {
      let toSkip = options.skipRecords ?? 0;
      let chunk: { records: FileRecord[]; failures: FileFailure[] } = { records: [], failures: [] };
      for (const [at, row] of rows.entries()) {
        rowsRead = at + 1;
        if (at <= headerAt || !isFilled(row) || toSkip-- > 0) continue;
        addRow(chunk, { plan, header, fine }, row, at + 1);
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
  /** The indexes of the columns in which some times have fractions of a second. */
  readonly fine: ReadonlySet<number>;
}

function addRow(
  { records, failures }: { records: FileRecord[]; failures: FileFailure[] },
  { plan, header, fine }: SheetForm,
  row: SheetRow,
  line: number,
): void {
  const cells = cellsOf(header, row);
  const converted = convertRow(plan, cells, (index) => row[index] instanceof Date);
  const { record, problems } = converted;
  const unclear = [...plan.columns, ...lostKeysOf(plan, row)].flatMap(
    ({ index, column, field }): Problem[] => {
      const cell = row[index];
      const message = cell instanceof Date ? unclearIn(cell, fine.has(index)) : undefined;
      return message === undefined ? [] : [{ column, field, code: 'invalid_format', message }];
    },
  );
  if (unclear.length > 0) {
    const others = (problems ?? []).filter(({ field }) => !unclear.some((one) => one.field === field));
    const marked = withUnclear({ ...emptyFields(plan, unclear), ...record }, unclear);
    failures.push({ line, problems: [...others, ...unclear].slice(0, 5), record: marked });
  } else if (converted.problems === undefined) records.push({ line, record, keys: keysOf(plan, cells) });
  else failures.push({ line, ...converted });
}

/** Returns the fields with problems, because the record lacks those whose cells are lost. */
function emptyFields({ columns }: ColumnPlan, problems: readonly Problem[]) {
  const lost = columns.filter(({ field }) => problems.some((problem) => problem.field === field));
  return Object.fromEntries(lost.map(({ field }) => [field, '']));
}

/** Returns a row's cells as text. No id may be derived from a number that is lost. */
function cellsOf(header: readonly string[], row: SheetRow): string[] {
  return header.map((_, index) => (isLost(row[index]) ? '' : textOf(row[index])));
}

/**
 * Returns whether the cell is a number that is too large for a date but is formatted as one. The library converts it to a date,
 * so the number is lost.
 */
function isLost(cell: unknown): boolean {
  return cell instanceof Date && !(cell.getTime() < lastDayEndMs);
}

/** Returns the columns of the record's key whose numbers are lost in this row. */
function lostKeysOf({ key }: ColumnPlan, row: SheetRow) {
  const lost = key?.columns.filter((index) => isLost(row[index])) ?? [];
  return lost.map((index) => ({ index, column: key?.name ?? null, field: key?.field ?? null }));
}

/**
 * A spreadsheet stores a time as a number of days, which is not exact, and the library cuts off what is below a millisecond.
 * A whole second may therefore come out a millisecond too low, but so may every other time of the column.
 */
function hasFractions(rows: readonly SheetRow[], column: number): boolean {
  return rows.some(
    ({ [column]: cell }) =>
      cell instanceof Date && !isLost(cell) && ![0, 999].includes(cell.getUTCMilliseconds()),
  );
}

/** Returns why a date cannot be read exactly, or undefined. Whole days are exact. */
function unclearIn(date: Date, isFine: boolean): string | undefined {
  const ms = date.getTime();
  if (isLost(date)) return 'is a number that is formatted as a date; format the column as a number';
  if (ms < firstDayMs)
    return 'is a duration, a time without a date, or a date before 1910; write it as text, such as 1909-12-31';
  if ((isFine && ms % dayMs !== 0) || ms % dayMs === dayMs - 1)
    return 'is in a column with fractions of a second, which cannot be read exactly from a spreadsheet; save the sheet as CSV';
  return undefined;
}

const dayMs = 86_400_000;

/** A duration is stored like a date after the end of 1899, or of 1903. No record is about the years that follow. */
const firstDayMs = Date.UTC(1910, 0, 1);

/** Spreadsheets have no dates after the year 9999. */
const lastDayEndMs = Date.UTC(10_000, 0, 1);

function isFilled(row: SheetRow): boolean {
  return row.some((cell) => textOf(cell).trim() !== '');
}

function textOf(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return cell instanceof Date ? isoOf(cell) : String(cell);
}

/** Formats a date as ISO 8601, rounded to seconds if it is a millisecond too low. The library's dates may be invalid. */
function isoOf(date: Date): string {
  if (Number.isNaN(date.getTime())) return String(date);
  const isLow = date.getUTCMilliseconds() === 999;
  return new Date(date.getTime() + (isLow ? 1 : 0)).toISOString();
}

export function explainSheet(error: Error): never {
  throw new FileError(
    `it cannot be read as a spreadsheet (${error.message}); save it again as .xlsx, or save the sheet as CSV`,
  );
}
