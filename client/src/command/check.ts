import { checkHeaders } from '../files/check-headers.ts';
import { checkerOf } from '../files/check-record.ts';
import { FileError } from '../files/file-error.ts';
import { findFiles } from '../files/find-files.ts';
import { type OpenedFile, openFile } from '../files/read-file.ts';
import { type Command, UsageError } from './command.ts';
import { columnOf } from './file-cut.ts';
import { fileOptions, fileOptionsHelp, readFileOptions, typeOf } from './file-options.ts';
import type { Problem } from './tally.ts';
import { grouped, print, printJsonLine, printTable, sayError, warn } from './terminal.ts';

/** Problems shown per file; --json has all. */
const shownMax = 20;

interface Checked {
  readonly path: string;
  readonly type: string;
  records: number;
  failed: number;
  problems: number;
}

export const check: Command = {
  summary: 'check files without a service',
  help: `Usage: intake check <files or folders...> [options]

Checks files as upload would, offline: everything but whether the records they refer to exist.

Options:
${fileOptionsHelp}
  --json                   prints every problem as a line of JSON

Examples:
  intake check exports/
  intake check sales.csv --type transactions --map 'Shop ID=shop_id'
  intake check transactions.csv --json | jq -r .column | sort | uniq -c

Exit code: 0, 1 if some records would fail, 2 if the check could not run.`,
  options: { ...fileOptions, json: { type: 'boolean' } },
  takesFiles: true,
  async run(values, positionals) {
    if (positionals.length === 0)
      throw new UsageError('Name the files or folders to check. See intake check --help.');
    const files = await findFiles(positionals, typeOf(values));
    const optionsOf = await readFileOptions(values);
    const standardInput = await checkHeaders(files, optionsOf);
    const results: Checked[] = [];
    let isBroken = false;
    for (const { path, type } of files) {
      const file = path === '-' && standardInput ? standardInput : await openFile(path, optionsOf(type));
      if (file.ignoredColumns.length > 0) {
        warn(
          `${path}: these columns are no fields of ${type} and would not be sent: ${file.ignoredColumns.join(', ')}`,
        );
      }
      const checked: Checked = { path, type, records: 0, failed: 0, problems: 0 };
      results.push(checked);
      await checkFile(file, checked, values.json === true).catch((error: unknown) => {
        if (!(error instanceof FileError)) throw error;
        isBroken = true;
        sayError(...error.lines);
      });
    }
    if (!values.json) {
      const rows = results.map(({ path, type, records, failed }) => [path, type, records, failed]);
      await printTable(['File', 'Type', 'Records', 'Failed'], rows);
    }
    return isBroken ? 2 : results.some(({ failed }) => failed > 0) ? 1 : 0;
  },
};

async function checkFile(file: OpenedFile, checked: Checked, isJson: boolean): Promise<void> {
  const checkRecord = checkerOf(file.type);
  for await (const { records, failures } of file.chunks()) {
    const failed: { line: number; problems: readonly Problem[] }[] = [...failures];
    for (const { line, record } of records) {
      const problems = checkRecord(record);
      if (problems.length === 0) continue;
      failed.push({ line, problems: problems.map((one) => ({ ...one, column: columnOf(file, one.field) })) });
    }
    checked.records += records.length + failures.length;
    checked.failed += failed.length;
    failed.sort((a, b) => a.line - b.line);
    for (const { line, problems } of failed) {
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

function messageOf(path: string, line: number, { column, message }: Problem): string {
  return `${path}:${line}: ${column === null ? '' : `${column}: `}${message}`;
}
