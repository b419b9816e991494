import type { UploadType } from '../../generated/resources.ts';
import { type ColumnPlan, convertRow, keysOf, planColumns } from '../columns/plan-columns.ts';
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
        addRow(chunk, plan, header, row, at + 1);
        if (chunk.records.length + chunk.failures.length < rowsPerChunk) continue;
        yield chunk;
        chunk = { records: [], failures: [] };
      }
      yield chunk;
    },
  };
}

function addRow(
  { records, failures }: { records: FileRecord[]; failures: FileFailure[] },
  plan: ColumnPlan,
  header: readonly string[],
  row: SheetRow,
  line: number,
): void {
  const cells = header.map((_, index) => textOf(row[index]));
  const { record, problems } = convertRow(plan, cells);
  if (problems === undefined) records.push({ line, record, keys: keysOf(plan, cells) });
  else failures.push({ line, problems, record });
}

function isFilled(row: SheetRow): boolean {
  return row.some((cell) => textOf(cell).trim() !== '');
}

function textOf(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return cell instanceof Date ? isoOf(cell) : String(cell);
}

/**
 * Formats a date as ISO 8601. A spreadsheet stores a time as a fraction of a day, so a whole second may come out slightly
 * too low.
 */
function isoOf(date: Date): string {
  const ms = date.getTime();
  return new Date(ms % 1_000 === 999 ? ms + 1 : ms).toISOString();
}

export function explainSheet(error: Error): never {
  throw new FileError(
    `it cannot be read as a spreadsheet (${error.message}); save it again as .xlsx, or save the sheet as CSV`,
  );
}
