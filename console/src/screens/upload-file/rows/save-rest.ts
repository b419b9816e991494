import { FailedCsv, reasonOf } from '../../../../../client/src/parsing/text/failed-csv.ts';
import type { Row, RowChecker } from './row-checker.ts';

/** Returns the failed rows as CSV, with their corrections and reasons, so that they can be corrected and uploaded again. */
export function restOf({ header, separator }: RowChecker, rows: readonly Row[]): Blob {
  const csv = new FailedCsv(header, separator);
  const lines = rows.map(({ cells, text = '', problems }) => {
    const reason = problems.length === 0 ? 'corrected, but not uploaded' : reasonOf(problems);
    return csv.line(cells ?? text.split(separator), reason);
  });
  // Without a byte order mark, spreadsheet programs would assume a different encoding.
  return new Blob(['\ufeff', csv.headerLine(), ...lines], { type: 'text/csv' });
}

/** Returns the name for the file of failed rows. For example, shops.csv.gz becomes shops.failed.csv. */
export function restName(fileName: string): string {
  return `${fileName.replace(/\.(gz|zst)$/i, '').replace(/\.(csv|tsv|ndjson|jsonl|json|xlsx|parquet)$/i, '')}.failed.csv`;
}

export function saveRest(fileName: string, checker: RowChecker, rows: readonly Row[]): void {
  const address = URL.createObjectURL(restOf(checker, rows));
  const link = document.createElement('a');
  link.href = address;
  link.download = restName(fileName);
  link.click();
  // The browser reads the file asynchronously, so the URL must stay valid for some time.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
