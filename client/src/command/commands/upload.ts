import { onFirstLimit } from '../../connection.ts';
import { isUnstored } from '../../errors.ts';
import { checkHeaders } from '../../files/check-headers.ts';
import { type Found, findFiles } from '../../files/find-files.ts';
import { openFile } from '../../files/reading/read-file.ts';
import { OutputError } from '../../files/write-whole.ts';
import type { UploadType } from '../../generated/resources.ts';
import { IntakeError } from '../../index.ts';
import type { FileError } from '../../parsing/file-error.ts';
import type { FileOptions, OpenedFile } from '../../parsing/opened-file.ts';
import { explain } from '../explain.ts';
import { type Command, UsageError, type Values } from '../options/command.ts';
import {
  fileOptions,
  fileOptionsHelp,
  mappedColumns,
  readFileOptions,
  typedOptions,
  typeOf,
  warnSkipped,
} from '../options/file-options.ts';
import { connectionOf, keyIdOf, readSettings, type Settings } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { duration, Progress } from '../terminal/progress.ts';
import { printJson, say, sayError } from '../terminal/terminal.ts';
import {
  type Circumstances,
  type Earlier,
  findEarlier,
  Journal,
  refuseRepeat,
  removeJournal,
} from '../uploading/journal.ts';
import { PassedIds } from '../uploading/passed-ids.ts';
import { failedIn, printSummary, summaryJson } from '../uploading/summary.ts';
import { Tally } from '../uploading/tally.ts';
import { type FileResult, nothingDone, type Run, resultOf, uploadFile } from '../uploading/upload-file.ts';

export const upload: Command = {
  summary: 'upload files of records',
  help: `Usage: intake upload <files or folders...> [options]

Uploads CSV, NDJSON and JSON, each also as .gz and .zst, Parquet, the first sheet of .xlsx, and standard input (-).
Referenced types are uploaded first, whatever the order of the files. Records that fail are written with the reason to
<file>.failed.ndjson and, for CSV, <file>.failed.csv.

Options:
${fileOptionsHelp}
  --dry-run                check everything but store nothing
  --resume                 continue an interrupted upload; give the same files and options
  --json                   print the summary as JSON

Examples:
  intake upload shops.csv transactions.csv
  intake upload exports/ --dry-run
  intake upload sales.csv --type transactions --map 'Shop ID=shop_id' --date-format dd.MM.yyyy --decimal-comma
  gzip -dc transactions.csv.gz | intake upload - --type transactions

Exit code: 0 on success, 1 if some records failed, 2 if the upload could not run or was interrupted.`,
  options: {
    ...fileOptions,
    'dry-run': { type: 'boolean' },
    resume: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  takesFiles: true,
  async run(values, positionals) {
    if (positionals.length === 0)
      throw new UsageError('Specify the files or folders to upload. See intake upload --help.');
    const found = await findFiles(positionals, typeOf(values));
    const isResumed = values.resume === true;
    const isDryRun = values['dry-run'] === true;
    if (isResumed && isDryRun)
      throw new UsageError('A dry run has nothing to resume, so leave out --resume or --dry-run.');
    if (isResumed && found.files.some(({ path }) => path === '-')) {
      throw new UsageError('Standard input cannot be resumed. Save it to a file, or upload it again.');
    }
    const settings = await readSettings();
    const progress = new Progress();
    const report = tellRetries(progress);
    const run: Run = {
      connection: connectionOf(settings, (error, waitMs) => {
        if (isUnstored(error)) run.unrefused--;
        report(error, waitMs);
      }),
      dryRun: isDryRun ? new PassedIds() : undefined,
      progress,
      tally: new Tally(),
      signal: interruption(),
      state: 'unsent',
      unrefused: 0,
    };
    const planned = await plan(values, settings, found);
    // Journals from an earlier run are only needed for --resume.
    if (!isResumed) await removeJournals(planned);
    const results = await uploadAll(run, planned);
    const broken = results.at(-1)?.broken;
    // If one file could not be read to its end, --resume needs every file's journal.
    if (!broken) await removeJournals(planned);
    const exitCode = broken ? 2 : failedIn(results) > 0 ? 1 : 0;
    // Set the exit code before printing, because printing fails if the reader has closed the pipe.
    process.exitCode = exitCode;
    const summary = { results, tally: run.tally, isDryRun, isResumed };
    if (values.json) await printJson(summaryJson(summary));
    else await printSummary(summary);
    if (broken) sayError(...explainBroken(broken, planned.length - results.length, isDryRun));
    return exitCode;
  },
};

interface Planned {
  readonly path: string;
  readonly type: UploadType;
  readonly options: FileOptions;
  /** Undefined if the file is uploaded without a journal. */
  readonly circumstances: Circumstances | undefined;
  readonly earlier: Earlier | undefined;
  readonly standardInput: OpenedFile | undefined;
}

/** Checks the files and their journals for problems before anything is sent. */
async function plan(values: Values, settings: Settings, found: Found): Promise<Planned[]> {
  const optionsOf = await readFileOptions(values);
  warnSkipped(found);
  const opened = await checkHeaders(found, optionsOf, mappedColumns(values));
  const planned: Planned[] = [];
  for (const { path, type } of found.files) {
    const options = optionsOf(type);
    const circumstances =
      values['dry-run'] || path === '-'
        ? undefined
        : {
            service: settings.url,
            keyId: keyIdOf(settings.key),
            options: JSON.stringify(options),
            typed: typedOptions(values),
          };
    const earlier = values.resume && circumstances ? await findEarlier(path, type, circumstances) : undefined;
    if (circumstances && !values.resume && type === 'interactions') await refuseRepeat(path);
    const standardInput = path === '-' ? opened : undefined;
    planned.push({ path, type, options, circumstances, earlier, standardInput });
  }
  return planned;
}

async function removeJournals(planned: readonly Planned[]): Promise<void> {
  for (const { path, circumstances } of planned) if (circumstances) await removeJournal(path);
}

/**
 * Uploads the files in order and stops at the first file that cannot be read completely, because later files may refer to
 * its missing records.
 */
async function uploadAll(run: Run, planned: readonly Planned[]): Promise<FileResult[]> {
  const results: FileResult[] = [];
  try {
    for (const one of planned) {
      results.push(await uploadOne(run, one));
      if (results.at(-1)?.broken) break;
    }
  } finally {
    run.progress.clear();
  }
  return results;
}

async function uploadOne(run: Run, one: Planned): Promise<FileResult> {
  const { path, type, options, circumstances, earlier } = one;
  const before = earlier?.state ?? nothingDone;
  if (before.end === 'finished') return resultOf(path, type, before);
  run.state = before.done > 0 ? 'answered' : earlier ? 'sent' : 'unsent';
  run.unrefused = 0;
  const file = one.standardInput ?? (await openFile(path, { ...options, type, skipRecords: before.done }));
  const journal =
    circumstances && (await (earlier ? Journal.resume(path, earlier) : Journal.begin(path, circumstances)));
  try {
    return await uploadFile(run, file, before, journal);
  } catch (error) {
    // If an earlier run started this upload, records may be stored, because that run may not have received the response.
    const isNothingStored = run.state === 'sent' && !earlier && run.unrefused === 0;
    if (journal && (run.state === 'unsent' || isNothingStored)) await removeJournal(path);
    throw journal ? withAdvice(error, path, isNothingStored ? 'nothing stored' : run.state) : error;
  } finally {
    await journal?.close();
    await file.close();
  }
}

function explainBroken({ lines }: FileError, filesLeft: number, isDryRun: boolean): readonly string[] {
  if (isDryRun) return lines;
  const left =
    filesLeft === 0 ? '' : ` ${filesLeft} more ${filesLeft === 1 ? 'file was' : 'files were'} not started.`;
  const advice = 'Replace the file with a complete one and run the same command with --resume.';
  return [...lines, `Everything before it was uploaded.${left} ${advice}`];
}

/** Reports retries at most every ten seconds, because requests often fail together for the same reason. */
function tellRetries(progress: Progress): (error: IntakeError, waitMs: number) => void {
  let toldMs = -Infinity;
  const tellLimit = onFirstLimit((notice) => {
    progress.clear();
    say(notice);
  });
  return (error, waitMs) => {
    tellLimit(error, waitMs);
    // Do not report a 429, which is normal during a fast upload.
    if (error.status === 429 || performance.now() - toldMs < 10_000) return;
    toldMs = performance.now();
    progress.clear();
    say(`${error.message} Trying again in ${duration(waitMs / 1000)}.`);
  };
}

function withAdvice(error: unknown, path: string, state: Run['state'] | 'nothing stored'): unknown {
  const canContinue =
    error instanceof IntakeError || error instanceof OutputError || (error as Error).name === 'AbortError';
  if (!canContinue || state === 'unsent') return error;
  const resume = 'Run the same command with --resume to continue';
  if (state === 'answered')
    return new UsageError(...explain(error), `Everything that was answered so far is stored. ${resume}.`);
  return new UsageError(
    ...explain(error),
    state === 'nothing stored'
      ? `Nothing in ${path} was stored.`
      : `No request for ${path} was answered, and part of it may be stored. ${resume}; nothing is stored twice.`,
  );
}
