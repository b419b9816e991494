import { formatOf } from '../../files/find-files.ts';
import { grouped, print, printTable, printTitle } from '../terminal/terminal.ts';
import type { Place, Repeated, Tally } from './tally.ts';
import type { FileResult } from './upload-file.ts';

/** The maximum number of lines shown per list. With --json, more are printed. */
const shownMax = 10;
const jsonMax = 1_000;

export interface Summary {
  readonly results: readonly FileResult[];
  readonly tally: Tally;
  readonly isDryRun: boolean;
  readonly isResumed: boolean;
}

export function failedIn(results: readonly FileResult[]): number {
  return results.reduce((sum, { counts, unsent }) => sum + counts.failed + unsent, 0);
}

export function summaryJson({ results, tally, isDryRun }: Summary): object {
  return {
    dry_run: isDryRun,
    failed: failedIn(results),
    files: results.map(({ path, type, counts, unsent, failedFiles, broken }) => ({
      path,
      type,
      counts,
      unsent,
      failed_files: failedFiles,
      ...(broken && { error: broken.message }),
    })),
    reasons: tally.reasons().slice(0, jsonMax),
    missing: tally.missing().slice(0, jsonMax),
    warnings: tally.warnings().slice(0, jsonMax),
  };
}

export async function printSummary({ results, tally, isDryRun, isResumed }: Summary): Promise<void> {
  await printFiles(results);
  const since = isResumed ? ', since the upload was resumed' : '';
  const reasons = tally.reasons();
  await printList(`Why records failed${since}`, reasons, ['Count', 'Type', 'Column', 'Reason'], (one) => [
    one.count,
    one.type,
    one.column ?? '',
    `${one.message} (first in ${placeOf(one.first, results.length > 1)})`,
  ]);
  const missing = tally.missing();
  const hasKeys = missing.some(({ key }) => key !== null);
  const missingHeader = ['Records', 'Type', 'Id', ...(hasKeys ? ['Key in the file'] : [])];
  await printList(`Missing ids${since}`, missing, missingHeader, (one) => [
    one.count,
    one.type,
    one.id,
    ...(hasKeys ? [one.key ?? ''] : []),
  ]);
  const warnings = tally.warnings();
  await printList('Warnings', warnings, ['Count', 'Field', 'Warning'], (one) => [
    one.count,
    one.field ?? '',
    one.repeated ? `${one.message}: ${repeatedOf(one.repeated, results.length > 1)}` : one.message,
  ]);
  const failedFiles = results.flatMap(({ failedFiles }) => failedFiles);
  if (failedFiles.length > 0) {
    const advice = isDryRun ? 'Records that would fail, with the reason:' : failedAdvice;
    await print('', advice);
    await print(...failedFiles.map((file) => `  ${file}`));
  }
  if (isDryRun) {
    await print(
      '',
      'This was a dry run: nothing is stored. Records that passed count as stored for the files that refer to them.',
    );
  }
}

const failedAdvice = 'Failed records, with the reason. Correct them and upload either file:';

/** Returns a record's position. The file's name is left out if there is only one. */
function placeOf({ path, line }: Place, hasPath: boolean): string {
  return hasPath ? `${path}:${line}` : `${unitOf(path)} ${line}`;
}

function repeatedOf(repeated: readonly Repeated[], hasPath: boolean): string {
  const shown = repeated.slice(0, shownMax).map(({ path, lines }) => {
    const named = lines.length > shownMax ? lines.slice(0, shownMax) : lines.slice(0, -1);
    const last = lines.length > shownMax ? `${lines.length - shownMax} more` : lines.at(-1);
    const listed = `${unitOf(path)}s ${named.join(', ')} and ${last}`;
    return hasPath ? `${path} ${listed}` : listed;
  });
  return `${shown.join('; ')}${repeated.length > shownMax ? '; and more' : ''}`;
}

function unitOf(path: string): string {
  const format = formatOf(path);
  if (format === 'xlsx') return 'row';
  return format === 'json' || format === 'parquet' ? 'record' : 'line';
}

/** Prints a table of the files. Omits empty columns, because a table with all columns is wider than most terminals. */
function printFiles(results: readonly FileResult[]): Promise<void> {
  const rows = results.map(({ path, type, counts, unsent }) => ({
    File: path,
    Type: type,
    Records: counts.received + unsent,
    Created: counts.created,
    Updated: counts.updated,
    Unchanged: counts.unchanged,
    Stale: counts.stale,
    Failed: counts.failed + unsent,
  }));
  const optional = ['Updated', 'Unchanged', 'Stale'] as const;
  const empty: readonly string[] = optional.filter((name) => rows.every((row) => row[name] === 0));
  const cells = rows.map((row) => Object.entries(row).filter(([name]) => !empty.includes(name)));
  return printTable(
    cells[0]?.map(([name]) => name) ?? [],
    cells.map((row) => row.map(([, cell]) => cell)),
  );
}

async function printList<T>(
  title: string,
  list: readonly T[],
  header: readonly string[],
  rowOf: (one: T) => (string | number)[],
): Promise<void> {
  if (list.length === 0) return;
  await printTitle(title);
  await printTable(header, list.slice(0, shownMax).map(rowOf));
  if (list.length > shownMax) await print(`and ${grouped(list.length - shownMax)} more`);
}
