import type { UploadType } from '../generated/resources.ts';
import { suggestColumns } from '../parsing/columns/suggest-columns.ts';
import { FileError } from '../parsing/file-error.ts';
import type { FileChunk } from '../parsing/opened-file.ts';
import { openFile } from './reading/read-file.ts';

/** With this number of columns that match fields, a header needs no further evidence. */
const fieldsEnough = 2;
const skippedMax = 5;

/** Where a file's table is, as in a mapping file. */
export interface Layout {
  sheet?: string | number;
  skip_top?: number;
}

export interface Table {
  readonly layout: Layout;
  /** The columns, or the keys of the first JSON objects. */
  readonly header: readonly string[];
  /** The first texts and numbers of a column. */
  readonly cellsOf: (column: string) => readonly (string | number)[];
}

interface Candidate extends Table {
  readonly names: number;
  /** The number of columns that match fields. */
  readonly fields: number;
  readonly isRead: boolean;
  readonly otherSheets: readonly string[];
}

/**
 * Finds the table in a file, below the lines of a title. If the columns of a spreadsheet's first sheet match no fields, takes the
 * sheet whose columns match the most.
 */
export async function findTable(
  path: string,
  type: UploadType,
  encoding: string | undefined,
): Promise<Table & { readonly reasons: readonly string[] }> {
  const open = (layout: Layout) => openTable(path, type, encoding, layout);
  // The first sheet may be empty. Other files have no sheets, and fail again.
  const first = await open({}).catch((error) =>
    open({ sheet: 2 }).catch(() => {
      throw error;
    }),
  );
  let table = await belowTitle(first, open);
  for (const sheet of first.otherSheets) {
    if (table.fields >= fieldsEnough) break;
    const other = await belowTitle(await open({ sheet }), open);
    if (other.fields > table.fields) table = other;
  }
  const reasons = Object.entries(table.layout).map(
    ([option, value]) =>
      `"${option}": ${JSON.stringify(value)}, because the columns ${JSON.stringify(table.header.slice(0, 3)).slice(1, -1)} are there`,
  );
  return { ...table, reasons };
}

/** Returns the first table below a title, which has few cells, or above which the rows have another number of cells. */
async function belowTitle(
  first: Candidate,
  open: (layout: Layout) => Promise<Candidate>,
): Promise<Candidate> {
  if (first.isRead) return first;
  for (let skipTop = 1; skipTop <= skippedMax; skipTop++) {
    const table = await open({ ...first.layout, skip_top: skipTop }).catch((error) => {
      if (error instanceof FileError) return undefined;
      throw error;
    });
    if (table === undefined) break;
    if (table.isRead && table.names >= first.names * 2) return table;
  }
  return first;
}

async function openTable(
  path: string,
  type: UploadType,
  encoding: string | undefined,
  layout: Layout,
): Promise<Candidate> {
  const place = { sheet: layout.sheet, skipTop: layout.skip_top };
  const file = await openFile(path, { type, encoding, isPreview: true, ...place });
  const chunks = file.chunks()[Symbol.asyncIterator]();
  const { value }: IteratorResult<FileChunk, undefined> = await chunks.next();
  await chunks.return?.(undefined);
  await file.close();
  const { records: read = [], failures = [] } = value ?? {};
  const records = read.map(({ record }) => record);
  const header = file.header ?? [...new Set(records.flatMap((record) => Object.keys(record)))];
  const names = header.filter((name) => name !== '');
  const fields = Object.values(suggestColumns(type, names)).filter((field) => field !== '').length;
  const keyOf = (column: string) => (file.header ? String(header.indexOf(column)) : column);
  return {
    layout,
    header,
    cellsOf: (column) =>
      records
        .map((record) => record[keyOf(column)])
        .filter((cell) => typeof cell === 'string' || typeof cell === 'number'),
    names: names.length,
    fields,
    // Standard input can be opened only once, and JSON has no header.
    isRead:
      path === '-' ||
      file.header === undefined ||
      fields >= fieldsEnough ||
      (names.length > 1 && records.length >= failures.length),
    otherSheets: file.otherSheets ?? [],
  };
}
