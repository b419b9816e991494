import { checkHeaders } from '../../files/check-headers.ts';
import { findFiles } from '../../files/find-files.ts';
import { openFile } from '../../files/reading/read-file.ts';
import { resources } from '../../generated/resources.ts';
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
} from '../options/file-options.ts';
import { chunksWithNotice } from '../terminal/encoding-notice.ts';
import { grouped, print, printJsonLine, printTable, sayError, warn } from '../terminal/terminal.ts';
import { columnOf } from '../uploading/file-cut.ts';
import { RepeatedIds } from '../uploading/repeated-ids.ts';
import type { Problem } from '../uploading/tally.ts';

/** The maximum number of problems shown per file. With --json, all of them are printed. */
const shownMax = 20;

interface Checked {
  readonly path: string;
  readonly type: string;
  records: number;
  failed: number;
  /** The number of records with the same id as an earlier record. */
  repeated: number;
  problems: number;
}

export const check: Command = {
  summary: 'check files offline',
  help: `Usage: intake check <files or folders...> [options]

Checks files offline in the same way as upload, except whether referenced records exist. It also reports ids that several
records share, because only the last of these records would stay.

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
    let isBroken = false;
    for (const { path, type } of found.files) {
      const file = path === '-' && standardInput ? standardInput : await openFile(path, optionsOf(type));
      if (file.ignoredColumns.length > 0) {
        warn(
          `${path}: these columns are not fields of ${type} and would not be sent: ${file.ignoredColumns.join(', ')}`,
        );
      }
      const checked: Checked = { path, type, records: 0, failed: 0, repeated: 0, problems: 0 };
      results.push(checked);
      await checkFile(file, checked, repeatedIds, values.json === true).catch((error: unknown) => {
        if (!(error instanceof FileError)) throw error;
        isBroken = true;
        sayError(...error.lines);
      });
    }
    if (!values.json) {
      const hasRepeated = results.some(({ repeated }) => repeated > 0);
      const rows = results.map(({ path, type, records, failed, repeated }) => {
        return [path, type, records, failed, ...(hasRepeated ? [repeated] : [])];
      });
      const header = ['File', 'Type', 'Records', 'Failed', ...(hasRepeated ? ['Repeated ids'] : [])];
      await printTable(header, rows);
    }
    return isBroken ? 2 : results.some(({ failed }) => failed > 0) ? 1 : 0;
  },
};

async function checkFile(
  file: OpenedFile,
  checked: Checked,
  repeatedIds: RepeatedIds,
  isJson: boolean,
): Promise<void> {
  const checkRecord = checkerOf(file.type);
  for await (const { records, failures } of chunksWithNotice(file)) {
    const failed: { line: number; problems: readonly Problem[] }[] = [...failures];
    const repeated: typeof failed = [];
    for (const { line, record } of records) {
      const problems = checkRecord(record);
      if (problems.length === 0) {
        const earlier = repeatedIds.find(file.path, file.type, line, record);
        if (earlier !== undefined) repeated.push({ line, problems: [repeatedProblem(file, earlier)] });
        continue;
      }
      failed.push({ line, problems: problems.map((one) => ({ ...one, column: columnOf(file, one.field) })) });
    }
    checked.records += records.length + failures.length;
    checked.failed += failed.length;
    checked.repeated += repeated.length;
    const all = [...failed, ...repeated].sort((a, b) => a.line - b.line);
    for (const { line, problems } of all) {
      for (const { column, code, message } of problems) {
        checked.problems++;
        if (isJson) await printJsonLine({ path: file.path, line, column, code, message });
        else if (checked.problems <= shownMax)
          await print(messageOf(file.path, line, { column, code, message }));
      }
    }
  }
  const more = checked.problems - shownMax;
  if (!isJson && more > 0) await print(`${file.path}: and ${grouped(more)} more; --json lists them all`);
}

/**
 * Describes a repeated id, which is not a failure: the service accepts both records, and the later one replaces the earlier
 * one.
 */
function repeatedProblem(file: OpenedFile, earlier: string): Problem {
  const message = `is also the id of ${earlier}, so this record would replace that one; check the ids`;
  return { column: columnOf(file, resources[file.type].idField), code: 'repeated_id', message };
}

function messageOf(path: string, line: number, { column, message }: Problem): string {
  return `${path}:${line}: ${column === null ? '' : `${column}: `}${message}`;
}
