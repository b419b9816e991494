import { FailedCsv, reasonOf } from '../../../../../client/src/parsing/text/failed-csv.ts';
import type { Row, RowChecker } from './row-checker.ts';

/** The failed rows as a CSV, with their corrections and reasons, ready to be corrected and uploaded again. */
export function restOf({ header, separator }: RowChecker, rows: readonly Row[]): Blob {
  const csv = new FailedCsv(header, separator);
  const lines = rows.map(({ cells, text = '', problems }) => {
    const reason = problems.length === 0 ? 'corrected, but not uploaded' : reasonOf(problems);
    return csv.line(cells ?? text.split(separator), reason);
  });
  // Spreadsheet programs take a file without a byte order mark for another encoding.
  return new Blob(['\ufeff', csv.headerLine(), ...lines], { type: 'text/csv' });
}

/** shops.csv.gz becomes shops.failed.csv. */
export function restName(fileName: string): string {
  return `${fileName.replace(/\.(gz|zst)$/i, '').replace(/\.(csv|tsv|ndjson|jsonl|json|xlsx|parquet)$/i, '')}.failed.csv`;
}

export function saveRest(fileName: string, checker: RowChecker, rows: readonly Row[]): void {
  const address = URL.createObjectURL(restOf(checker, rows));
  const link = document.createElement('a');
  link.href = address;
  link.download = restName(fileName);
  link.click();
  // The browser takes the file within this turn or the next ones.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
