import type { UploadType } from '../../generated/resources.ts';
import { type ColumnPlan, convertRow, keysOf, planColumns } from '../columns/plan-columns.ts';
import { FileError } from '../file-error.ts';
import type { FileFailure, FileOptions, FileRecord, OpenedTable } from '../opened-file.ts';

const rowsPerChunk = 500;
/** A sheet is read whole: this many bytes hold some 200,000 rows, which take 600 MB of memory. */
const bytesMax = 10 * 1_048_576;

export type SheetRow = readonly unknown[];

export function checkSheetSize(bytes: number): void {
  if (bytes > bytesMax)
    throw new FileError(
      `it is larger than ${bytesMax / 1_048_576} MiB, and a spreadsheet has to fit in memory; save the sheet as CSV`,
    );
}

/** How the library that unpacks spreadsheets is to read cells. */
export function cellReading({ decimalComma }: FileOptions) {
  // A number is written with a point in the file, whatever the sheet shows.
  const parseNumber = (text: string) => (decimalComma ? text.replace('.', ',') : text);
  return { parseNumber, trim: false };
}

/** Reads the rows of a sheet, whose first row that is not empty is the header. */
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

/** A spreadsheet keeps a time as a fraction of a day, so that a whole second may be a little less. */
function isoOf(date: Date): string {
  const ms = date.getTime();
  return new Date(ms % 1_000 === 999 ? ms + 1 : ms).toISOString();
}

export function explainSheet(error: Error): never {
  throw new FileError(
    `it cannot be read as a spreadsheet (${error.message}); save it again as .xlsx, or save the sheet as CSV`,
  );
}
