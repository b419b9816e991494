import { schemas } from '../../../../../client/src/generated/schemas.ts';
import { reasonColumn } from '../../../../../client/src/parsing/columns/plan-columns.ts';
import { FailedCsv, reasonOf } from '../../../../../client/src/parsing/text/failed-csv.ts';
import type { Row, RowChecker } from './row-checker.ts';

/** The failed rows, with their corrections and reasons, so that they can be corrected and uploaded again. */
export interface Rest {
  readonly extension: 'csv' | 'ndjson';
  readonly content: Blob;
}

/** Returns CSV unless some rows lack fields that others have, because an empty cell would clear a stored value. */
export function restOf(checker: RowChecker, rows: readonly Row[]): Rest {
  const [first, ...others] = new Set(
    rows.flatMap((row) => (row.cells ? [JSON.stringify(checker.columnsOf(row))] : [])),
  );
  if (others.length > 0) return { extension: 'ndjson', content: ndjsonOf(checker, rows) };
  const header: readonly string[] = first === undefined ? checker.header : JSON.parse(first);
  const csv = new FailedCsv(header, checker.separator);
  const lines = rows.map(({ cells, text = '', problems }) => {
    const kept = cells?.filter((_, at) => header.includes(checker.header[at] ?? ''));
    return csv.line(kept ?? text.split(checker.separator), reasonFor(problems));
  });
  // Without a byte order mark, spreadsheet programs would assume a different encoding.
  return {
    extension: 'csv',
    content: new Blob(['\ufeff', csv.headerLine(), ...lines], { type: 'text/csv' }),
  };
}

function ndjsonOf(checker: RowChecker, rows: readonly Row[]): Blob {
  const { properties } = schemas[checker.type];
  const jsonOf = (field: string, cell = '') => {
    const types = [properties[field]?.type ?? 'string'].flat();
    const isText = !types.some((type) => type === 'number' || type === 'integer' || type === 'boolean');
    return cell === '' ? null : isText ? cell : asJson(cell);
  };
  const lines = rows.map((row) => {
    const { cells, line, text, problems } = row;
    const fields = cells
      ? checker.columnsOf(row).map((field) => [field, jsonOf(field, cells[checker.header.indexOf(field)])])
      : Object.entries({ line, text });
    return `${JSON.stringify({ ...Object.fromEntries(fields), [reasonColumn]: reasonFor(problems) })}\n`;
  });
  return new Blob(lines, { type: 'application/x-ndjson' });
}

function asJson(cell: string): unknown {
  try {
    return JSON.parse(cell);
  } catch {
    return cell;
  }
}

function reasonFor(problems: Row['problems']): string {
  return problems.length === 0 ? 'corrected, but not uploaded' : reasonOf(problems);
}

/** Returns the name for the file of failed rows. For example, shops.csv.gz becomes shops.failed.csv. */
export function restName(fileName: string, extension: Rest['extension']): string {
  return `${fileName.replace(/\.(gz|zst)$/i, '').replace(/\.(csv|tsv|ndjson|jsonl|json|xlsx|parquet)$/i, '')}.failed.${extension}`;
}

export function saveRest(fileName: string, checker: RowChecker, rows: readonly Row[]): void {
  const { extension, content } = restOf(checker, rows);
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = restName(fileName, extension);
  link.click();
  // The browser reads the file asynchronously, so the URL must stay valid for some time.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
