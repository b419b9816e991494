import { resolve } from 'node:path';
import { type Connection, onFirstLimit } from '../../connection.ts';
import { isTooLarge } from '../../errors.ts';
import { checkHeaders } from '../../files/check-headers.ts';
import { type Found, findFiles } from '../../files/find-files.ts';
import { openFile } from '../../files/reading/read-file.ts';
import { OutputError } from '../../files/write-whole.ts';
import { IntakeError } from '../../index.ts';
import { limits } from '../../limits.ts';
import type { FileError } from '../../parsing/file-error.ts';
import type { FileOptions, OpenedFile } from '../../parsing/opened-file.ts';
import { runNameOf } from '../../uploading/run-of-files.ts';
import { explain } from '../explain.ts';
import { type Command, textOf, UsageError, type Values } from '../options/command.ts';
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
import { confirm } from '../terminal/confirm.ts';
import { interruption } from '../terminal/interruption.ts';
import { duration, Progress } from '../terminal/progress.ts';
import { grouped, printJson, say, sayError, watchOutput } from '../terminal/terminal.ts';
import {
  adviceForUnknown,
  filesFrom,
  findEarlier,
  isBegun,
  refuseRepeat,
  refuseReplaced,
  reported,
} from '../uploading/earlier-run.ts';
import {
  Journal,
  markReady,
  noteRun,
  removeJournals,
  removeUnsent,
  versionOf,
} from '../uploading/journal.ts';
import { type Guard, lockFiles } from '../uploading/lock-files.ts';
import { type RunNames, type UploadedFile, type WithRun, withRuns } from '../uploading/note-runs.ts';
import { PassedIds } from '../uploading/passed-ids.ts';
import { failedIn, printSummary, summaryJson } from '../uploading/summary.ts';
import { Tally } from '../uploading/tally.ts';
import {
  type FileResult,
  nothingDone,
  resultOf,
  type Transfer,
  uploadFile,
} from '../uploading/upload-file.ts';
import { certain, UploadRuns } from '../uploading/upload-runs.ts';

export const upload: Command = {
  summary: 'upload files of records',
  help: `Usage: intake upload <files or folders...> [options]

Uploads CSV, NDJSON and JSON, each also as .gz and .zst, Parquet, a sheet of .xlsx, and standard input (-).
Referenced types are uploaded first, whatever the order of the files. A record that is stored already gets the fields that the
file has: an empty cell clears its field, and a field without a column keeps its value. Records that fail are written with the
reason to <file>.failed.ndjson and, for CSV, <file>.failed.csv; those of earlier uploads become <file>.1.failed.csv and so on.
The service shows the upload as a run: see intake runs. Standard input (-) has no run.

Options:
${fileOptionsHelp}
  --name <name>            name the run; without it, the first file or folder does
  --again                  upload interactions again that were uploaded before
  --yes                    does not ask before --replace clears stored values
  --dry-run                check everything but store nothing, and show which stored values would be cleared
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
    name: { type: 'string' },
    again: { type: 'boolean' },
    yes: { type: 'boolean' },
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
    if (values.replace && !values.yes && !isDryRun && found.files.some(({ path }) => path === '-'))
      throw new UsageError(
        'With --replace, files are read twice, because it may clear stored values, and standard input can be read only once. Save it to a file, or add --yes.',
      );
    const names = namesOf(values, positionals);
    const { unlock, guard } = await lockFiles(isDryRun ? [] : found.files);
    try {
      return await uploadFound(values, names, found, guard);
    } finally {
      await unlock();
    }
  },
};

const nameCharactersMax = 200;

/** Returns the names that a run can have: the one that the user gives, and that of the first file or folder. */
function namesOf(values: Values, positionals: readonly string[]): RunNames {
  const given = textOf(values, 'name');
  if (given !== undefined && (given === '' || Array.from(given).length > nameCharactersMax))
    throw new UsageError(`--name must have 1 to ${nameCharactersMax} characters.`);
  const first = positionals.find((path) => path !== '-');
  return { given, default: runNameOf(first === undefined ? '-' : resolve(first)) };
}

async function uploadFound(values: Values, names: RunNames, found: Found, guard: Guard): Promise<number> {
  const isResumed = values.resume === true;
  const isDryRun = values['dry-run'] === true;
  const settings = await readSettings();
  const progress = new Progress();
  const connection = connectionOf(settings, tellRetries(progress));
  const signal = interruption();
  const runs = new UploadRuns(connection, { isAgain: values.again === true, signal, guard });
  const transfer: Transfer = {
    connection,
    dryRun: isDryRun ? new PassedIds() : undefined,
    mode: values.replace ? 'replace' : 'merge',
    progress,
    tally: new Tally(),
    signal,
    guard,
    runs,
    state: 'unsent',
    open: 0,
  };
  const plans = await plan(transfer.connection, values, settings, found);
  if (values.replace && !values.yes && !isDryRun) await confirmClearing(transfer, plans);
  const begun = await begin(await withRuns(plans, names, signal), guard);
  const planned = await openRuns(transfer, begun);
  const results = await uploadAll(transfer, planned);
  const notEnded = await runs.end(planned, results);
  const broken = results.at(-1)?.broken;
  const exitCode = broken || notEnded.length > 0 ? 2 : failedIn(results) > 0 ? 1 : 0;
  const outputFailure = watchOutput();
  const summary = { results, tally: transfer.tally, isDryRun, isResumed, runs: runs.list() };
  if (!runs.isSupported) say('This service is of an older release, so the upload is not shown as a run.');
  if (values.json) await printJson(summaryJson(summary));
  else await printSummary(summary);
  const failure = await outputFailure();
  if (failure !== undefined) throw notReported(failure, isDryRun);
  if (broken) sayError(...explainBroken(broken, planned.length - results.length, isDryRun));
  else if (notEnded.length > 0)
    sayError(
      ...notEnded,
      'Everything is uploaded. To end the run, run the same command again with --resume; nothing is sent again.',
    );
  // If one file could not be read to its end, --resume needs every file's journal.
  else await removeJournals(journaled(planned), guard);
  return exitCode;
}

function notReported(reason: string, isDryRun: boolean): UsageError {
  return new UsageError(
    `The result cannot be written to standard output: ${reason}.`,
    isDryRun
      ? 'This was a dry run: nothing is stored.'
      : 'The upload itself is complete. To print its result, run the same command again with --resume; nothing is sent again.',
  );
}

interface Planned extends UploadedFile, WithRun {
  readonly options: FileOptions;
  /** The prefix of the Idempotency-Keys, if the upload of this file begins with this run. */
  readonly upload?: string;
  readonly standardInput: OpenedFile | undefined;
}

/** Checks the files and their journals for problems before anything is sent. */
async function plan(
  connection: Connection,
  values: Values,
  settings: Settings,
  found: Found,
): Promise<Planned[]> {
  const optionsOf = await readFileOptions(values);
  warnSkipped(found);
  const opened = await checkHeaders(found, optionsOf, mappedColumns(values));
  const paths = found.files.map(({ path }) => path).filter((path) => path !== '-');
  const planned = found.files.map(({ path, type }): Planned => {
    const options = optionsOf(type);
    const isJournaled = !values['dry-run'] && path !== '-';
    const circumstances = isJournaled && {
      service: settings.url,
      keyId: keyIdOf(settings.key),
      reading: JSON.stringify(options),
      typed: typedOptions(values),
      files: filesFrom(path, paths),
    };
    const standardInput = path === '-' ? opened : undefined;
    return {
      path,
      type,
      options,
      circumstances: circumstances || undefined,
      earlier: undefined,
      standardInput,
    };
  });
  if (!values.resume) {
    for (const { path, type, circumstances } of planned)
      if (circumstances && type === 'interactions') await refuseRepeat(path);
    return planned;
  }
  const resumable = planned.flatMap(({ path, type, circumstances }) =>
    circumstances ? [{ file: path, type, now: circumstances }] : [],
  );
  const earlier = await findEarlier(connection, resumable);
  return planned.map((one) => ({ ...one, earlier: earlier.get(one.path) }));
}

/** Creates the journals of all files that have none, so that --resume knows them whenever this run is interrupted. */
async function begin(planned: readonly Planned[], guard: Guard): Promise<readonly Planned[]> {
  const begun: Planned[] = [];
  try {
    const all: Planned[] = [];
    for (const one of planned) {
      const { path, circumstances, earlier } = one;
      const upload = circumstances && !earlier ? crypto.randomUUID() : undefined;
      all.push(upload === undefined ? one : { ...one, upload });
      // A journal that is not ready is replaced too. Otherwise it would deny later that the others are finished.
      if (!circumstances) continue;
      if (earlier && (earlier.isReady || isBegun(earlier))) {
        if (circumstances.run && circumstances.run.key !== earlier.run?.key) {
          const bytes = await noteRun(path, circumstances.run, guard);
          all[all.length - 1] = { ...one, earlier: { ...earlier, bytes } };
        }
        continue;
      }
      const prefix = upload ?? earlier?.upload ?? '';
      await (await Journal.begin(path, circumstances, prefix, false, guard)).close();
      begun.push(one);
    }
    for (const { path } of begun) await markReady(path);
    return all;
  } catch (error) {
    await removeUnsent(journaled(begun.filter(({ earlier }) => earlier === undefined)), guard);
    throw error;
  }
}

/**
 * Finds out with a dry run which stored values replacing the records would clear, and asks if there are any. An export that
 * lost a column looks complete and would empty its field everywhere.
 */
async function confirmClearing(transfer: Transfer, planned: readonly Planned[]): Promise<void> {
  const dryRun: Transfer = { ...transfer, dryRun: new PassedIds(), tally: new Tally() };
  say('Checking which stored values would be cleared, before anything is stored.');
  const replaced = planned.filter(
    ({ type, earlier }) =>
      type !== 'interactions' && earlier !== reported && !(earlier !== undefined && isBegun(earlier)),
  );
  const versions = await Promise.all(replaced.map(({ path }) => versionOf(path)));
  const results = await uploadAll(
    dryRun,
    replaced.map((one) => ({ ...one, circumstances: undefined, earlier: undefined })),
  );
  const broken = results.at(-1)?.broken;
  if (broken)
    throw new UsageError(...broken.lines, 'Nothing was stored. Replace the file with a complete one.');
  const cleared = dryRun.tally.cleared();
  if (cleared.length === 0) return;
  const fields = cleared.map(({ type, field, count }) => `${field} of ${grouped(count)} ${type}`).join(', ');
  await confirm({
    question: `--replace would clear stored values: ${fields}. Continue?`,
    withoutTerminal: `--replace would clear stored values, so nothing was stored: ${fields}. Without --replace, fields without a column keep their values.`,
    declined: 'Nothing was stored.',
  });
  for (const [at, { path }] of replaced.entries())
    if (JSON.stringify(await versionOf(path)) !== JSON.stringify(versions[at]))
      throw new UsageError(`${path} has changed since it was checked, so nothing was stored. Start again.`);
}

/** Opens the runs. Messages are those of an upload that could not send its first request. */
async function openRuns(transfer: Transfer, planned: readonly Planned[]): Promise<readonly Planned[]> {
  try {
    return await transfer.runs.open(planned);
  } catch (error) {
    const mayBeOpen = error instanceof IntakeError && error.outcome === 'unknown';
    if (!mayBeOpen) await giveUp(transfer, planned);
    const isExpected = error instanceof IntakeError || (error as Error).name === 'AbortError';
    if (!isExpected) throw error;
    const [first] = planned;
    const nothing = planned.length === 1 ? `Nothing in ${first?.path} was stored.` : 'Nothing was stored.';
    const resume = 'Run the same command with --resume to continue.';
    const isResumed = planned.some(({ earlier }) => earlier !== undefined);
    const advice = isResumed ? resume : mayBeOpen ? `${nothing} ${resume}` : nothing;
    throw new UsageError(...explain(certain(error)), advice);
  }
}

/** Removes the journals of an upload that has stored nothing. */
async function giveUp({ guard, runs }: Transfer, planned: readonly Planned[]): Promise<void> {
  // Journals of an earlier run are kept, because they may show that its other files are finished.
  if (planned.some(({ earlier }) => earlier !== undefined)) return;
  if (await removeUnsent(journaled(planned), guard)) await runs.abandon();
}

function journaled(planned: readonly Planned[]): string[] {
  return planned.flatMap(({ path, circumstances }) => (circumstances ? [path] : []));
}

/**
 * Uploads the files in order and stops at the first file that cannot be read completely, because later files may refer to
 * its missing records.
 */
async function uploadAll(transfer: Transfer, planned: readonly Planned[]): Promise<FileResult[]> {
  const results: FileResult[] = [];
  try {
    for (const one of planned) {
      if (one.earlier !== reported) results.push(await uploadOne(transfer, one));
      if (results.at(-1)?.broken) break;
    }
  } catch (error) {
    if (transfer.open === 0 && transfer.state !== 'answered' && results.length === 0)
      await giveUp(transfer, planned);
    throw error;
  } finally {
    transfer.progress.clear();
  }
  return results;
}

/** Returns whether an earlier run may have stored something. Requests with records are not in the journal. */
function mayHaveSent({ earlier, type }: Planned): boolean {
  return earlier !== undefined && (type !== 'interactions' || isBegun(earlier));
}

async function uploadOne(transfer: Transfer, one: Planned): Promise<FileResult> {
  const { path, type, options, circumstances, earlier } = one;
  const before = earlier?.state ?? nothingDone;
  if (before.end === 'finished') return resultOf(path, type, before);
  transfer.state = before.done > 0 ? 'answered' : earlier ? 'sent' : 'unsent';
  transfer.open = 0;
  // Journals of files that are not begun are written again, because the file may have been replaced in the meantime.
  const upload = one.upload ?? earlier?.upload ?? '';
  const journal =
    circumstances &&
    (await (earlier && isBegun(earlier)
      ? Journal.resume(path, earlier, transfer.guard)
      : Journal.begin(path, circumstances, upload, true, transfer.guard)));
  let file = one.standardInput;
  try {
    const isHashed = journal !== undefined && type === 'interactions';
    file ??= await openFile(path, { ...options, type, skipRecords: before.done, isHashed });
    if (earlier && isBegun(earlier)) await refuseReplaced(path, type, earlier);
    await one.refuseChanged?.();
    if (isHashed) await askTime(transfer);
    return await uploadFile(transfer, file, before, journal, transfer.runs.of(circumstances?.run));
  } catch (error) {
    throw journal ? withAdvice(error, one, transfer) : withKeys(error, one);
  } finally {
    await journal?.close();
    await file?.close();
  }
}

/** Asks for the service's time, which the journal of interactions notes. Without an answer, it has only this computer's time. */
async function askTime({ connection, signal: stop }: Transfer): Promise<void> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limits.serviceTimeWaitMs)]);
  await connection.askServiceMs({ retry: false, signal }).catch(() => {});
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

function withAdvice(error: unknown, planned: Planned, { state, open }: Transfer): unknown {
  const { path } = planned;
  const isOfService = error instanceof IntakeError;
  const canContinue = isOfService || error instanceof OutputError || (error as Error).name === 'AbortError';
  if (!canContinue || state === 'unsent') return error;
  const lines = explain(error);
  const resume = 'Run the same command with --resume to continue';
  if (isOfService && error.outcome === 'unknown' && isTooLarge(error))
    return new UsageError(
      ...lines,
      `A request for ${path} that may be stored is too large for the service now, and must not be split. ${resume} when the operator has raised the limits of the service, within a day.`,
      ...adviceForUnknown(path, error.idempotencyKeys),
    );
  if (state === 'answered')
    return new UsageError(...lines, `Everything that was answered so far is stored. ${resume}.`);
  return new UsageError(
    ...lines,
    open === 0 && !mayHaveSent(planned)
      ? `Nothing in ${path} was stored.`
      : `No request for ${path} was answered completely, and part of it may be stored. ${resume}; nothing is stored twice.`,
  );
}

/** Interactions from standard input cannot be resumed, and a new upload would store them again. */
function withKeys(error: unknown, { path, type }: Planned): unknown {
  if (type !== 'interactions' || !(error instanceof IntakeError) || error.outcome === 'failed') return error;
  return new UsageError(...explain(error), ...adviceForUnknown(path, error.idempotencyKeys));
}
