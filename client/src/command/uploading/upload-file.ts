import { basename } from 'node:path';
import type { Connection } from '../../connection.ts';
import { FailedFile } from '../../files/failed-file.ts';
import { unitOf } from '../../files/find-files.ts';
import type { UploadType } from '../../generated/resources.ts';
import type { Counts } from '../../index.ts';
import type { SkippedRow } from '../../parsing/columns/skipped-rows.ts';
import { FileError } from '../../parsing/file-error.ts';
import type { FileFailure, OpenedFile } from '../../parsing/opened-file.ts';
import { reasonOf } from '../../parsing/text/failed-csv.ts';
import { ByteLines } from '../../uploading/byte-lines.ts';
import { RequestCutter } from '../../uploading/request-cutter.ts';
import { addCounts, type FileOfRun, noCounts, type Outcome, sendCuts } from '../../uploading/send-cuts.ts';
import { warnUnread } from '../options/file-options.ts';
import { chunksWithNotice } from '../terminal/encoding-notice.ts';
import type { Progress } from '../terminal/progress.ts';
import {
  type Failed,
  type FileCut,
  failedOf,
  keyOf,
  packFailure,
  packRow,
  repeatedLines,
} from './file-cut.ts';
import type { Journal, JournalState } from './journal.ts';
import type { Guard } from './lock-files.ts';
import type { PassedIds } from './passed-ids.ts';
import type { Tally } from './tally.ts';
import type { UploadRuns } from './upload-runs.ts';

/**
 * These limits are lower than the service's, because pending requests have to fit in memory and a resumed upload sends them
 * again.
 */
const perRequest = { recordsMax: 2_000, bytesMax: 1_000_000 };

export interface FileResult {
  readonly path: string;
  readonly type: UploadType;
  readonly counts: Counts;
  /** The number of records that were not sent, because they could not be read or converted. No receipt counts them. */
  readonly unsent: number;
  /** The number of records that were refused because they are too large for a request. No receipt counts them. */
  readonly notKept: number;
  readonly failedFiles: readonly string[];
  /** The fields without a column, whose stored values were kept. */
  readonly keptFields: readonly string[];
  /** The rows above the header and below the last record that were not read. */
  readonly skippedRows: readonly SkippedRow[];
  /** The reason why the file could not be read to its end. Everything before that point is uploaded. */
  readonly broken?: FileError | undefined;
}

/** What all files of an upload share. */
export interface Transfer {
  readonly connection: Connection;
  /** Undefined unless this is a dry transfer. */
  readonly dryRun: PassedIds | undefined;
  readonly mode: 'replace' | 'merge';
  readonly progress: Progress;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  readonly guard: Guard;
  readonly runs: UploadRuns;
  /** The state of the current file, taking earlier runs into account. */
  state: 'unsent' | 'sent' | 'answered';
  /** The number of this run's requests that may be stored, because an attempt was not answered. */
  open: number;
}

export const nothingDone: JournalState = {
  done: 0,
  counts: noCounts,
  unsent: 0,
  notKept: 0,
  failedFiles: {},
};

/**
 * Uploads one file. The file's reader skips the records that are already done, and each answered request is written to the
 * journal.
 */
export async function uploadFile(
  transfer: Transfer,
  file: OpenedFile,
  before: JournalState,
  journal: Journal | undefined,
  run?: FileOfRun | undefined,
): Promise<FileResult> {
  const { path, type } = file;
  let state: JournalState = { ...before, end: undefined, read: undefined };
  warnUnread(file, 'are not sent');
  const failedFile = new FailedFile(file, state.failedFiles, transfer.dryRun !== undefined);
  let answered = 0;
  const show = () => {
    const failed = state.counts.failed + state.unsent + state.notKept;
    transfer.progress.show({
      path,
      bytes: file.bytes,
      bytesRead: file.bytesRead(),
      records: answered,
      failed,
    });
  };
  const reading: Reading = { show, broken: undefined };
  const cutter = new RequestCutter<undefined>(type, { first: state.done, ...perRequest });
  // Only interactions need a journal of sent requests, because records with ids can be sent again at any time.
  const sent = type === 'interactions' ? journal : undefined;
  const sending = {
    key: journal?.upload ?? crypto.randomUUID(),
    dryRun: transfer.dryRun !== undefined,
    mode: type === 'interactions' ? undefined : transfer.mode,
    run,
    signal: transfer.signal,
    onOpen: (change: 1 | -1) => {
      transfer.open += change;
    },
    sent,
    refusesUnknown: transfer.dryRun === undefined,
  };
  for await (const { cut, outcome: answer } of sendCuts(
    transfer.connection,
    type,
    cutsOf(file, cutter, transfer, reading),
    sending,
  )) {
    transfer.state = 'answered';
    transfer.runs.noteAnswer();
    const outcome = transfer.dryRun?.settle(type, cut, answer) ?? answer;
    for (const failed of failedOf(file, cut, outcome)) {
      noteFailed(transfer.tally, file, failed);
      const place = `${unitOf(path)} ${failed.line}`;
      failedFile.add({ ...failed, reason: `${place}: ${reasonOf(failed.problems)}` });
    }
    noteWarnings(transfer.tally, file, cut, outcome);
    transfer.tally.addCleared(type, outcome.cleared);
    answered += cut.end - cut.first;
    state = {
      done: cut.end,
      counts: addCounts(state.counts, outcome.counts),
      unsent: state.unsent + cut.skipped,
      notKept: state.notKept + outcome.notKept,
      failedFiles: failedFile.flush(),
      requestId: outcome.requestIds.at(-1) ?? state.requestId,
    };
    await journal?.write(state);
    show();
  }
  failedFile.close();
  const { broken } = reading;
  const shown = { keptFields: file.absentFields(), skippedRows: file.skippedRows?.() ?? [] };
  await journal?.write({
    ...state,
    ...shown,
    end: broken ? 'broken' : 'finished',
    read: broken && file.hashRead?.(),
  });
  return { ...resultOf(path, type, { ...state, ...shown }), broken };
}

export function resultOf(
  path: string,
  type: UploadType,
  { counts, unsent, notKept, failedFiles, keptFields = [], skippedRows = [] }: JournalState,
): FileResult {
  // An earlier run may have been given another path to the folder.
  const folder = path.slice(0, path.length - basename(path).length);
  const names = Object.keys(failedFiles).map((name) => `${folder}${basename(name)}`);
  return { path, type, counts, unsent, notKept, failedFiles: names, keptFields, skippedRows };
}

interface Reading {
  readonly show: () => void;
  broken: FileError | undefined;
}

/**
 * Yields requests in file order. A resumed upload relies on this order, because it skips records from the start of the file
 * until it reaches the first one that is not done.
 */
async function* cutsOf(
  file: OpenedFile,
  cutter: RequestCutter<undefined>,
  transfer: Transfer,
  reading: Reading,
): AsyncGenerator<FileCut> {
  let rows = new ByteLines('\n');
  let unsent = new ByteLines('\n');
  const whole = (cut: ReturnType<typeof cutter.take> & object): FileCut => {
    const complete = { ...cut, rows, unsent };
    rows = new ByteLines('\n', rows.byteLength + 65_536);
    unsent = new ByteLines('\n', 1_024);
    if (transfer.state === 'unsent') transfer.state = 'sent';
    return complete;
  };
  try {
    for await (const { records, failures } of chunksWithNotice(file)) {
      reading.show();
      for (let read = 0, failed = 0; read < records.length || failed < failures.length; ) {
        const record = records[read];
        const failure = failures[failed];
        const isRead = record !== undefined && !(failure && failure.line < record.line);
        const packed = isRead ? packRow(record) : packFailure(failure as FileFailure);
        const sent = isRead ? record.record : failure?.sendable;
        const cut = sent ? cutter.add(undefined, sent, packed.length) : cutter.skip(packed.length);
        if (cut) yield whole(cut);
        if (isRead) read++;
        else failed++;
        (sent ? rows : unsent).add(packed);
      }
    }
  } catch (error) {
    // Upload the records read so far, and report the error once those records are answered.
    if (!(error instanceof FileError)) throw error;
    reading.broken = error;
  }
  const last = cutter.take();
  if (last) yield whole(last);
}

/** Adds the service's warnings. The service does not know the file's lines, so add those of repeated ids. */
function noteWarnings(tally: Tally, { path, type }: OpenedFile, cut: FileCut, outcome: Outcome): void {
  // Each batch in the request has its own warning, but the lines are those of the whole request.
  const first = outcome.warnings.find(({ code }) => code === 'repeated_id');
  for (const warning of outcome.warnings) {
    const lists = warning === first ? repeatedLines(type, cut, outcome) : [];
    tally.addWarning(
      warning,
      lists.map((lines) => ({ path, lines })),
    );
  }
}

function noteFailed(tally: Tally, file: OpenedFile, failed: Failed): void {
  const { type } = file;
  for (const problem of failed.problems) {
    tally.addProblem(type, problem, { path: file.path, line: failed.line });
    if (problem.code === 'reference_not_found' && problem.field != null) {
      const key = keyOf(file, failed, problem.field);
      tally.addMissing(type, problem.field, failed.record as Record<string, unknown>, key);
    }
  }
}
