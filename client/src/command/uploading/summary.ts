import { unitOf } from '../../files/find-files.ts';
import type { SkippedRow } from '../../parsing/columns/skipped-rows.ts';
import { grouped, print, printTable, printTitle } from '../terminal/terminal.ts';
import type { Place, Reason, Repeated, Tally } from './tally.ts';
import type { FileResult } from './upload-file.ts';
import type { UploadRuns } from './upload-runs.ts';

/** The maximum number of lines shown per list. With --json, more are printed. */
const shownMax = 10;
const jsonMax = 1_000;

export interface Summary {
  readonly results: readonly FileResult[];
  readonly tally: Tally;
  readonly isDryRun: boolean;
  readonly isResumed: boolean;
  readonly runs: ReturnType<UploadRuns['list']>;
}

export function failedIn(results: readonly FileResult[]): number {
  return results.reduce((sum, { counts, unsent, notKept }) => sum + counts.failed + unsent + notKept, 0);
}

export function summaryJson({ results, tally, isDryRun, runs }: Summary): object {
  return {
    dry_run: isDryRun,
    runs,
    failed: failedIn(results),
    files: results.map(
      ({ path, type, counts, unsent, notKept, failedFiles, keptFields, skippedRows, broken }) => ({
        path,
        type,
        counts,
        unsent,
        not_kept: notKept,
        failed_files: failedFiles,
        kept_fields: keptFields,
        ...(skippedRows.length > 0 && { skipped_rows: skippedRows }),
        ...(broken && { error: broken.message }),
      }),
    ),
    reasons: tally
      .reasons()
      .slice(0, jsonMax)
      .map(({ places, ...reason }) => ({ ...reason, first: places[0] })),
    missing: tally.missing().slice(0, jsonMax),
    warnings: tally.warnings().slice(0, jsonMax),
    ...(isDryRun && { cleared: tally.cleared() }),
  };
}

export async function printSummary({ results, tally, isDryRun, isResumed, runs }: Summary): Promise<void> {
  await printFiles(results);
  const since = isResumed ? ', since the upload was resumed' : '';
  const reasons = tally.reasons();
  await printReasons(`Why records failed${since}`, reasons, ({ places: [first] }) =>
    first ? `first in ${placeOf(first, results.length > 1)}` : '',
  );
  const missing = tally.missing();
  const hasKeys = missing.some(({ key }) => key !== null);
  const missingHeader = ['Records', 'Type', 'Id', ...(hasKeys ? ['Key in the file'] : [])];
  await printList(`Missing ids${since}`, missing, missingHeader, (one) => [
    one.count,
    one.type,
    one.id,
    ...(hasKeys ? [one.key ?? ''] : []),
  ]);
  await printCleared(tally);
  await printSkipped(results);
  await printKept(results.filter(({ counts }) => counts.received > counts.created + counts.failed));
  const warnings = tally.warnings();
  await printList('Warnings', warnings, ['Count', 'Field', 'Warning'], (one) => [
    one.count,
    one.field ?? '',
    one.repeated ? `${one.message}: ${repeatedOf(one.repeated, results.length > 1)}` : one.message,
  ]);
  const unsent = results.reduce((sum, result) => sum + result.unsent, 0);
  if (unsent > 0)
    await print(
      '',
      `${unsent === 1 ? '1 record was' : `${grouped(unsent)} records were`} not sent: the service has neither a receipt nor a rejection for ${unsent === 1 ? 'it' : 'them'}.`,
    );
  const notKept = results.reduce((sum, result) => sum + result.notKept, 0);
  if (notKept > 0)
    await print(
      '',
      `${notKept === 1 ? '1 record was' : `${grouped(notKept)} records were`} not kept: ${notKept === 1 ? 'it is' : 'they are'} too large for a request, so the service has neither a receipt nor a rejection.`,
    );
  const failedFiles = results.flatMap(({ failedFiles }) => failedFiles);
  if (failedFiles.length > 0) {
    const advice = isDryRun ? 'Records that would fail, with the reason:' : failedAdvice;
    await print('', advice);
    await print(...failedFiles.map((file) => `  ${file}`));
  }
  for (const { run_id, name } of runs) await print('', `Run ${name}: intake runs ${run_id}`);
  if (isDryRun) {
    await print(
      '',
      'This was a dry run: nothing is stored. Records that passed count as stored for the files that refer to them.',
    );
  }
}

/** Prints what a dry run found. Does nothing after an upload. */
function printCleared(tally: Tally): Promise<void> {
  return printList(
    'Stored values that would be cleared',
    tally.cleared(),
    ['Count', 'Type', 'Field'],
    (one) => [one.count, one.type, one.field],
  );
}

/** Prints the fields that the files do not have, because an export that lost a column looks complete. */
export async function printKept(
  files: readonly { readonly path: string; readonly keptFields: readonly string[] }[],
): Promise<void> {
  const kept = files.filter(({ keptFields }) => keptFields.length > 0);
  if (kept.length === 0) return;
  await printTitle('Fields without a column, whose stored values are kept');
  await printTable(
    ['File', 'Fields'],
    kept.map(({ path, keptFields }) => [path, keptFields.join(', ')]),
  );
}

/** Prints the rows that the mapping file leaves out, because a file may have a record where it usually has its totals. */
export async function printSkipped(
  files: readonly { readonly path: string; readonly skippedRows: readonly SkippedRow[] }[],
): Promise<void> {
  const skipped = files.filter(({ skippedRows }) => skippedRows.length > 0);
  if (skipped.length === 0) return;
  await printTitle('Rows that were not read, because of "skip_top" and "skip_bottom"');
  await printTable(
    ['File', 'Rows', 'Beginning with'],
    skipped.map(({ path, skippedRows }) => [path, skippedRows.length, textsOf(skippedRows)]),
  );
}

/** Returns the texts of the first row and of the last ones, which are more likely to be records. */
function textsOf(rows: readonly SkippedRow[]): string {
  const shown = rows.length > 3 ? [...rows.slice(0, 1), ...rows.slice(-2)] : rows;
  return shown.map(({ line, text }) => `${line}: ${text}`).join('; ');
}

export function printReasons(
  title: string,
  reasons: readonly Reason[],
  placesOf: (reason: Reason) => string,
): Promise<void> {
  return printList(title, reasons, ['Count', 'Type', 'Column', 'Reason'], (one) => [
    one.count,
    one.type,
    one.column ?? '',
    `${one.message} (${placesOf(one)})`,
  ]);
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

/** Prints a table of the files. Omits empty columns, because a table with all columns is wider than most terminals. */
function printFiles(results: readonly FileResult[]): Promise<void> {
  const rows = results.map(({ path, type, counts, unsent, notKept }) => ({
    File: path,
    Type: type,
    Records: counts.received + unsent + notKept,
    Created: counts.created,
    Updated: counts.updated,
    Unchanged: counts.unchanged,
    Stale: counts.stale,
    Failed: counts.failed,
    'Not sent': unsent,
    'Not kept': notKept,
  }));
  const optional = ['Updated', 'Unchanged', 'Stale', 'Not sent', 'Not kept'] as const;
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
