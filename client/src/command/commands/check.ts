import { checkHeaders } from '../../files/check-headers.ts';
import { findFiles } from '../../files/find-files.ts';
import { openFile } from '../../files/reading/read-file.ts';
import { resources } from '../../generated/resources.ts';
import type { SkippedRow } from '../../parsing/columns/skipped-rows.ts';
import { FileError } from '../../parsing/file-error.ts';
import type { OpenedFile } from '../../parsing/opened-file.ts';
import { checkerOf } from '../../parsing/values/check-record.ts';
import { type Command, UsageError } from '../options/command.ts';
import {
  fileOptions,
  fileOptionsHelp,
  mappedColumns,
  readFileOptions,
  typeOf,
  warnSkipped,
  warnUnread,
} from '../options/file-options.ts';
import { chunksWithNotice } from '../terminal/encoding-notice.ts';
import { printJsonLine, printTable, sayError } from '../terminal/terminal.ts';
import { columnOf } from '../uploading/file-cut.ts';
import { RepeatedIds } from '../uploading/repeated-ids.ts';
import { printKept, printReasons, printSkipped } from '../uploading/summary.ts';
import { type Problem, type Reason, Tally } from '../uploading/tally.ts';

interface Checked {
  readonly path: string;
  readonly type: string;
  keptFields: readonly string[];
  skippedRows: readonly SkippedRow[];
  records: number;
  failed: number;
  /** The number of records with the same id as an earlier record. */
  repeated: number;
}

/** A record with problems. */
interface Found {
  readonly line: number;
  readonly problems: readonly Problem[];
  /** The position of an earlier record with the same id. */
  readonly earlier?: string;
}

interface Tallies {
  readonly failed: Tally;
  /** Repeated ids, which are not failures. */
  readonly repeated: Tally;
}

export const check: Command = {
  summary: 'check files offline',
  help: `Usage: intake check <files or folders...> [options]

Checks files offline in the same way as upload, except whether referenced records exist. It also reports ids that several
records share, because they would be stored as one record. It groups the problems by reason, and shows the first places
of each; --json prints every problem.

Options:
${fileOptionsHelp}
  --json                   print every problem as a line of JSON

Examples:
  intake check exports/
  intake check sales.csv --type transactions --map 'Shop ID=shop_id'
  intake check transactions.csv --json | jq -r .column | sort | uniq -c

Exit code: 0 on success, 1 if some records would fail, 2 if the check could not run.`,
  options: { ...fileOptions, json: { type: 'boolean' } },
  takesFiles: true,
  async run(values, positionals) {
    if (positionals.length === 0)
      throw new UsageError('Specify the files or folders to check. See intake check --help.');
    const found = await findFiles(positionals, typeOf(values));
    warnSkipped(found);
    const optionsOf = await readFileOptions(values);
    const standardInput = await checkHeaders(found, optionsOf, mappedColumns(values));
    const results: Checked[] = [];
    const repeatedIds = new RepeatedIds();
    const tallies: Tallies = { failed: new Tally(), repeated: new Tally() };
    let isBroken = false;
    for (const { path, type } of found.files) {
      const file = path === '-' && standardInput ? standardInput : await openFile(path, optionsOf(type));
      warnUnread(file, 'would not be sent');
      const checked: Checked = {
        path,
        type,
        keptFields: [],
        skippedRows: [],
        records: 0,
        failed: 0,
        repeated: 0,
      };
      results.push(checked);
      await checkFile(
        file,
        checkerOf(type, optionsOf(type).isMerged),
        checked,
        repeatedIds,
        values.json ? undefined : tallies,
      ).catch((error: unknown) => {
        if (!(error instanceof FileError)) throw error;
        isBroken = true;
        sayError(...error.lines);
      });
      checked.keptFields = file.absentFields();
      checked.skippedRows = file.skippedRows?.() ?? [];
      for (const { line, text } of values.json ? checked.skippedRows : [])
        await printJsonLine({
          path,
          line,
          column: null,
          code: 'skipped_row',
          message: `is skipped: ${text}`,
        });
    }
    if (!values.json) {
      const hasRepeated = results.some(({ repeated }) => repeated > 0);
      const rows = results.map(({ path, type, records, failed, repeated }) => {
        return [path, type, records, failed, ...(hasRepeated ? [repeated] : [])];
      });
      const header = ['File', 'Type', 'Records', 'Failed', ...(hasRepeated ? ['Repeated ids'] : [])];
      await printTable(header, rows);
      await printReasons('Why records would fail', tallies.failed.reasons(), placesOf);
      await printReasons('Repeated ids', tallies.repeated.reasons(), placesOf);
      await printKept(results);
      await printSkipped(results);
    }
    return isBroken ? 2 : results.some(({ failed }) => failed > 0) ? 1 : 0;
  },
};

async function checkFile(
  file: OpenedFile,
  checkRecord: ReturnType<typeof checkerOf>,
  checked: Checked,
  repeatedIds: RepeatedIds,
  tallies: Tallies | undefined,
): Promise<void> {
  for await (const { records, failures } of chunksWithNotice(file)) {
    const failed: Found[] = [...failures];
    const repeated: Found[] = [];
    for (const { line, record } of records) {
      const problems = checkRecord(record);
      if (problems.length === 0) {
        const earlier = repeatedIds.find(file.path, file.type, line, record);
        if (earlier !== undefined)
          repeated.push({ line, earlier, problems: [repeatedProblem(file, earlier)] });
        continue;
      }
      failed.push({ line, problems: problems.map((one) => ({ ...one, column: columnOf(file, one.field) })) });
    }
    checked.records += records.length + failures.length;
    checked.failed += failed.length;
    checked.repeated += repeated.length;
    for (const { line, problems, earlier } of [...failed, ...repeated].sort((a, b) => a.line - b.line)) {
      for (const problem of problems) {
        const { column, code, message } = problem;
        const place = { path: file.path, line, ...(earlier !== undefined && { earlier }) };
        if (!tallies) await printJsonLine({ path: file.path, line, column, code, message });
        else if (earlier === undefined) tallies.failed.addProblem(file.type, problem, place);
        else tallies.repeated.addProblem(file.type, { ...problem, message: repeatedReason }, place);
      }
    }
  }
}

/**
 * Describes a repeated id, which is not a failure: the service accepts both records, and the later one changes the earlier
 * one.
 */
function repeatedProblem(file: OpenedFile, earlier: string): Problem {
  const message = `is also the id of ${earlier}, so both would be stored as one record; check the ids`;
  return { column: columnOf(file, resources[file.type].idField), code: 'repeated_id', message };
}

/** The reason in the summary, in which such records are one group. */
const repeatedReason = 'is also the id of an earlier record, so both would be stored as one; check the ids';

function placesOf({ count, places }: Reason): string {
  const listed = places.map(({ path, line, earlier }) => {
    return `${path}:${line}${earlier === undefined ? '' : ` and ${earlier}`}`;
  });
  return `${count > places.length ? 'first in' : 'in'} ${listed.join(', ')}`;
}
