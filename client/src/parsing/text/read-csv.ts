import type { UploadType } from '../../generated/resources.ts';
import {
  type ColumnPlan,
  convertRow,
  type Problem,
  planColumns,
  reasonColumn,
} from '../columns/plan-columns.ts';
import { refuseRecord, type SkippedRow, SkippedRows } from '../columns/skipped-rows.ts';
import { FileError } from '../file-error.ts';
import type { FileChunk, FileFailure, FileOptions, FileRecord } from '../opened-file.ts';
import {
  CsvParser,
  type CsvRow,
  cutOff,
  detectSeparator,
  lastLineCutOff,
  notUtf8,
  replacement,
} from './csv-parser.ts';
import type { TextSource } from './text-source.ts';

interface CsvForm {
  readonly header: readonly string[];
  readonly separator: string;
  readonly plan: ColumnPlan;
}

export interface OpenedCsv extends CsvForm {
  skippedRows(): readonly SkippedRow[];
  chunks(): AsyncGenerator<FileChunk>;
}

const headerCharactersMax = 65_536;

/** Reads and checks the header. After that, `chunks` reads the rows. */
export async function openCsv(text: TextSource, type: UploadType, options: FileOptions): Promise<OpenedCsv> {
  let start = '';
  let piece: string | undefined = '';
  const skipped = new SkippedRows();
  const top = await skipTop(text, options, skipped);
  start = top.rest;
  while (piece !== undefined && !start.trimStart().includes('\n') && start.length <= headerCharactersMax) {
    piece = await text.next();
    start += piece ?? '';
  }
  const separator = detectSeparator(start.trimStart().split('\n', 1)[0] as string);
  const parser = new CsvParser(separator, top.lines + 1);
  const rows: CsvRow[] = parser.push(start, piece === undefined);
  while (rows.length === 0 && piece !== undefined) {
    piece = await text.next();
    rows.push(...parser.push(piece ?? '', piece === undefined));
  }
  const first = rows.shift();
  if (first === undefined) throw new FileError('it is empty; it needs a header with the names of the fields');
  if (first.malformed !== undefined)
    throw new FileError(`line ${first.line}, the header, ${first.malformed}`);
  const header = first.cells.map((cell) => cell.trim());
  const plan = planColumns(type, header, options);
  return {
    header,
    separator,
    plan,
    skippedRows: () => skipped.list(),
    chunks: () => {
      const skipBottom = top.isFailedFile ? 0 : options.skipBottom;
      return readRows(text, parser, rows, { header, separator, plan }, { ...options, skipBottom }, skipped);
    },
  };
}

/**
 * Reads the lines above the header, and returns the text after them. A file of failed records has no such lines, even if it is
 * uploaded with the same mapping file.
 */
async function skipTop(
  text: TextSource,
  { skipTop: lines = 0, skipBottom = 0 }: FileOptions,
  skippedRows: SkippedRows,
) {
  if (lines + skipBottom === 0) return { lines, rest: '', isFailedFile: false };
  let rest = '';
  let piece: string | undefined = '';
  const read = async () => {
    piece = await text.next();
    rest += piece ?? '';
  };
  while (piece !== undefined && !rest.includes('\n') && rest.length <= headerCharactersMax) await read();
  const isFailedFile = rest.split('\n', 1)[0]?.trimEnd().replace(/"$/, '').endsWith(reasonColumn) === true;
  if (isFailedFile) return { lines: 0, rest, isFailedFile };
  for (let skipped = 0; skipped < lines; skipped++) {
    while (piece !== undefined && !rest.includes('\n')) await read();
    const end = rest.indexOf('\n');
    skippedRows.add(skipped + 1, [end < 0 ? rest : rest.slice(0, end)]);
    rest = end < 0 ? '' : rest.slice(end + 1);
  }
  return { lines, rest, isFailedFile };
}

async function* readRows(
  text: TextSource,
  parser: CsvParser,
  firstRows: readonly CsvRow[],
  form: CsvForm,
  { skipRecords = 0, skipBottom = 0 }: FileOptions,
  skippedRows: SkippedRows,
): AsyncGenerator<FileChunk> {
  let toSkip = skipRecords;
  let rows = firstRows;
  let piece: string | undefined = '';
  /** The last rows so far, which may be the ones to leave out. */
  let held: readonly CsvRow[] = [];
  for (;;) {
    if (skipBottom > 0) {
      const all = [...held, ...rows];
      held = all.slice(-skipBottom);
      rows = all.slice(0, -skipBottom);
    }
    const skipped = Math.min(toSkip, rows.length);
    toSkip -= skipped;
    if (skipped < rows.length) yield convertRows(rows, skipped, form);
    if (piece === undefined) {
      const last = held.at(-1);
      // If the file is cut off, the rows to leave out are others.
      if (last?.isOpen || last?.malformed === lastLineCutOff)
        yield { records: [], failures: [], openLine: last.line };
      for (const { line, cells, malformed } of held) {
        if (malformed === undefined) refuseRecord(form.plan, cells, `line ${line}`);
        skippedRows.add(line, cells);
      }
      return;
    }
    piece = await text.next();
    rows = parser.push(piece ?? '', piece === undefined);
  }
}

function convertRows(rows: readonly CsvRow[], from: number, { header, separator, plan }: CsvForm): FileChunk {
  const records: FileRecord[] = [];
  const failures: FileFailure[] = [];
  for (let at = from; at < rows.length; at++) {
    const { line, cells, malformed } = rows[at] as CsvRow;
    if (malformed !== undefined && malformed !== notUtf8) {
      // The cells cannot be assigned to fields, so the problem has no column.
      const code = malformed === lastLineCutOff ? cutOff : 'malformed_row';
      const problem = { column: null, field: null, code, message: malformed };
      failures.push({ line, cells, record: cells.join(separator), problems: [problem] });
      continue;
    }
    const converted = convertRow(plan, cells);
    const { record, problems } = converted;
    if (malformed !== undefined)
      failures.push({ line, cells, record, problems: [badCell(header, cells), ...(problems ?? [])] });
    else if (converted.problems !== undefined) failures.push({ line, cells, ...converted });
    else records.push({ record, line, cells });
  }
  const last = rows.at(-1);
  return { records, failures, openLine: last?.isOpen ? last.line : undefined };
}

function badCell(header: readonly string[], cells: readonly string[]): Problem {
  const column = header[cells.findIndex((cell) => cell.includes(replacement))] ?? null;
  return { column, field: null, code: 'invalid_characters', message: notUtf8 };
}
