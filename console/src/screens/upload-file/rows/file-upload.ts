import { Connection } from '../../../../../client/src/connection.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import { resendUntilMs } from '../../../../../client/src/resend-until.ts';
import { endingOf, fileInRun } from '../../../../../client/src/uploading/run-of-files.ts';
import {
  addCleared,
  addCounts,
  type Cleared,
  type Counts,
  noCounts,
} from '../../../../../client/src/uploading/send-cuts.ts';
import { askWorker } from './ask-worker.ts';
import type { DescribedFile, Settings } from './describe-file.ts';
import { FailedRows } from './failed-rows.ts';
import { FileRun, isLost, service } from './file-run.ts';
import { type Row, RowChecker } from './row-checker.ts';
import { type Answered, SentRows, sendRows } from './send-rows.ts';

export type Step = 'check' | 'dry-run' | 'hash' | 'upload' | 'upload-corrected';

export interface Progress {
  readonly step: Step;
  /** The progress, from 0 to 1. */
  readonly share: number;
  readonly rows: number;
}

/** The outcome of the last completed step. */
export interface Finished {
  readonly step: Step;
  readonly rows: number;
  readonly failed: number;
}

/** A step that was stopped or failed. It can be continued at the same position with the same Idempotency-Keys. */
interface Interrupted {
  readonly step: Step;
  readonly key: string;
  readonly done: number;
  readonly rows: readonly Row[];
  readonly sent: SentRows;
  readonly startedMs: number;
  /** The same moment on the clock that does not jump. */
  readonly startedAtMs: number;
}

export interface UploadState {
  readonly progress: Progress | undefined;
  readonly finished: Finished | undefined;
  readonly failed: FailedRows;
  /** The number of corrected rows that are now valid. */
  readonly corrected: number;
  /** The number of rows with the same id as an earlier row, found by the check. */
  readonly repeatedIds: number;
  readonly firstRepeated: number | undefined;
  /** The last line if it has no line break. */
  readonly openLine: number | undefined;
  /** The total counts across all uploads of this file, which are those of their receipts. */
  readonly counts: Counts;
  /** The number of rows that have not been sent, because they cannot be. No receipt counts them. */
  readonly notSent: number;
  /** The number of rows that were sent, but the service kept nothing of them. No receipt counts them. */
  readonly notKept: number;
  /** The run that the uploads belong to, and whether it has ended. */
  readonly run: { readonly runId: string; readonly hasEnded: boolean } | undefined;
  /** The number of stored values that the upload would clear, by field, according to the dry run. */
  readonly cleared: Cleared;
  readonly hasUploaded: boolean;
  readonly canContinue: boolean;
  readonly error: unknown;
  /** The reason why requests are waiting. */
  readonly waiting: string | undefined;
}

const noticeMs = 100;

const initial: UploadState = {
  progress: undefined,
  finished: undefined,
  failed: new FailedRows(),
  corrected: 0,
  repeatedIds: 0,
  firstRepeated: undefined,
  openLine: undefined,
  counts: noCounts,
  notSent: 0,
  notKept: 0,
  run: undefined,
  cleared: {},
  hasUploaded: false,
  canContinue: false,
  error: undefined,
  waiting: undefined,
};

/**
 * Checks and uploads one file. Each step reads the file again as a stream, and only failed rows and corrections are kept.
 * This class is independent of React, because a step continues across renders.
 */
export class FileUpload {
  readonly checker: RowChecker;
  readonly #reading: {
    readonly described: DescribedFile;
    readonly settings: Settings;
    readonly corrections: Map<number, Row>;
  };
  readonly #listeners = new Set<() => void>();
  readonly #connection: Connection;
  #state = initial;
  #stop: AbortController | undefined;
  /** The current step, or the last one. */
  #performed = Promise.resolve();
  #interrupted: Interrupted | undefined;
  #shownAtMs = 0;
  #run: FileRun | undefined;
  /** Opening a run again with the same key returns the same run. */
  #runKey = newKey();
  #isUploadedAgain = false;
  /** Repeats the step that could not begin. */
  #repeat = async () => {};
  #sha256: string | undefined;
  /** The number of rows in the file, and of those that the upload has reached. */
  #rows = 0;
  #reached = 0;

  constructor(described: DescribedFile, settings: Settings) {
    this.#reading = { described, settings, corrections: new Map() };
    this.checker = new RowChecker(described, settings);
    this.#connection = new Connection({
      ...service(),
      onRetry: ({ message }, waitMs) =>
        this.#show({ waiting: `${message} Sending again in ${Math.ceil(waitMs / 1_000)} s.` }),
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): UploadState => this.#state;

  /** Runs all checks that need neither the service nor other records. */
  async check(): Promise<void> {
    await this.#perform('check', async (signal) => {
      for await (const answered of askWorker({ wants: 'check', ...this.#reading })) {
        signal.throwIfAborted();
        if (answered.is === 'progress') {
          const { rows, share } = answered;
          this.#show({ progress: { step: 'check', rows, share } });
        } else if (answered.is === 'checked') {
          const { rows, failed, repeatedIds, firstRepeated, openLine } = answered;
          const finished = { step: 'check', rows, failed: failed.count } as const;
          this.#rows = rows;
          this.#show({ failed: FailedRows.from(failed), repeatedIds, firstRepeated, openLine, finished });
        }
      }
    });
  }

  /** Requests a dry run, in which the service also checks references. Nothing is stored. */
  dryRun(): Promise<void> {
    return this.#send(newStep('dry-run'));
  }

  /** Uploads every valid row, including corrections. */
  upload(): Promise<void> {
    return this.#send(newStep('upload'));
  }

  /** Uploads only the rows that had failed and were then corrected. */
  uploadCorrected(): Promise<void> {
    return this.#send(newStep('upload-corrected', this.#state.failed.corrected()));
  }

  /** Uploads interactions that were uploaded before, and stores them again. */
  uploadAgain(): Promise<void> {
    this.#isUploadedAgain = true;
    return this.#repeat();
  }

  /** Continues an interrupted step. If a response was lost, the service returns the same response again. */
  async continue(): Promise<void> {
    if (this.#interrupted === undefined) return;
    const { sent, startedMs, startedAtMs } = this.#interrupted;
    // Interactions have no ids, so the service would store them twice once it has forgotten the Idempotency-Keys.
    const untilMs = this.checker.type === 'interactions' ? resendUntilMs(startedMs, startedAtMs) : Infinity;
    if (Date.now() > untilMs)
      this.#show({
        error: new Error(
          'It was interrupted a day ago, or the clock was set back. Upload the rows that are not stored as a new file.',
        ),
      });
    else await this.#send({ ...this.#interrupted, sent: new SentRows(sent, untilMs) }, false);
  }

  stop(): void {
    this.#stop?.abort();
  }

  /** Ends the run without the rows that are left. */
  async finish(): Promise<void> {
    this.#show({ error: undefined });
    await this.#endRun().catch((error) => this.#show({ error }));
  }

  /** Stops the upload for good. It cannot be continued, because its progress is stored nowhere else. */
  async leave(): Promise<void> {
    this.stop();
    await this.#performed;
    // The service shows a run that could not be ended as interrupted.
    await this.#endRun().catch(() => this.#run?.leave());
  }

  /** Corrects a cell, or the whole text of a row that could not be split into cells. */
  correct(line: number, column: string | null, text: string): void {
    if (this.#isFrozen()) return;
    this.#correct(line, column, text);
    this.#show({ corrected: this.#state.failed.corrected().length });
  }

  /** Replaces the same invalid value in every kept row. */
  correctEvery(column: string, from: string, to: string): void {
    if (this.#isFrozen()) return;
    const at = this.checker.header.indexOf(column);
    for (const { line, cells, problems } of this.#state.failed.rows())
      if (cells?.[at] === from && problems.some((problem) => problem.column === column))
        this.#correct(line, column, to);
    this.#show({ corrected: this.#state.failed.corrected().length });
  }

  #isFrozen(): boolean {
    return Boolean(this.#stop || this.#interrupted || this.#state.run?.hasEnded);
  }

  #correct(line: number, column: string | null, text: string): void {
    const row = this.#state.failed.get(line);
    if (row === undefined) return;
    const at = this.checker.header.indexOf(column ?? '');
    const corrected =
      row.cells === undefined || at < 0
        ? this.checker.ofText(line, text)
        : this.checker.ofCells(line, row.cells.with(at, text), row.absent);
    const { sent } = row;
    this.#reading.corrections.set(line, { ...corrected, sent });
    this.#state.failed.correct({ ...corrected, sent });
  }

  async #send(step: Interrupted, isFresh = true): Promise<void> {
    const dryRun = step.step === 'dry-run';
    let { done } = step;
    const { finished } = this.#state;
    this.#interrupted = undefined;
    await this.#perform(step.step, async (signal) => {
      try {
        if (!dryRun) await this.#enterRun(step.step, signal);
      } catch (error) {
        // Nothing was sent, so everything remains as it was.
        if (isFresh) this.#show({ finished });
        else this.#interrupted = step;
        this.#repeat = () => this.#send(step, isFresh);
        throw error;
      }
      // The step finds the file's failing rows again, but corrected rows have to be added here.
      if (isFresh) this.#show({ failed: this.#failedBefore(step), corrected: 0, cleared: {} });
      if (isFresh && step.step === 'upload') this.#show({ notSent: 0, notKept: 0 });
      const { connection, type } = { connection: this.#connection, type: this.checker.type };
      const rows =
        step.step === 'upload-corrected' ? chunked(step.rows.slice(done)) : this.#read(done, step.step);
      try {
        for await (const answered of sendRows(rows, {
          connection,
          type,
          key: step.key,
          mode: this.#reading.settings.isMerged ? 'merge' : 'replace',
          dryRun,
          run: this.#run && {
            runId: this.#run.runId,
            file: 0,
            isPart: step.step === 'upload-corrected',
          },
          done,
          sent: step.sent,
          signal,
        })) {
          done = answered.done;
          if (step.step === 'upload') this.#reached = done;
          this.#note(answered, step.step);
          this.#progress(step.step, done, step.rows.length);
        }
      } catch (error) {
        // The rows before the unreadable part are answered, and reading the file again would fail at the same position.
        if (!(error instanceof FileError || dryRun)) this.#interrupted = { ...step, done };
        if (isLost(error)) this.#leaveRun();
        throw error;
      } finally {
        if (!dryRun && done > 0) this.#show({ hasUploaded: true });
      }
      const { failed } = this.#state;
      this.#show({ finished: { step: step.step, rows: done, failed: failed.count } });
      // If the run cannot be ended now, the user can try again.
      if (!dryRun && failed.count === 0) await this.#endRun(signal).catch(() => {});
    });
  }

  /**
   * Opens the run, unless it is open. The first upload of the file opens it, and a later step only if the run has ended in
   * the meantime.
   */
  async #enterRun(step: Step, signal: AbortSignal): Promise<void> {
    if (this.#run !== undefined || (step !== 'upload' && this.#sha256 === undefined)) return;
    const { file } = this.#reading.described;
    this.#sha256 ??= await this.#hash(file, signal);
    const { name, size } = file;
    this.#run = await FileRun.open(this.#connection, {
      file: fileInRun(name, size, this.#sha256, this.checker.type),
      key: this.#runKey,
      again: this.#isUploadedAgain,
      signal,
    });
    const run = this.#run && { runId: this.#run.runId, hasEnded: false };
    this.#show({ run, progress: { step, share: 0, rows: 0 } });
  }

  async #hash(file: File, signal: AbortSignal): Promise<string> {
    for await (const answered of askWorker({ wants: 'hash', file })) {
      signal.throwIfAborted();
      if (answered.is === 'progress')
        this.#show({ progress: { step: 'hash', rows: 0, share: answered.share } });
      if (answered.is === 'hashed') return answered.sha256;
    }
    throw new Error('The file was not read.');
  }

  async #endRun(signal?: AbortSignal): Promise<void> {
    const { run, notSent, notKept } = this.#state;
    if (this.#run === undefined || run === undefined || run.hasEnded) return;
    const missing = Math.max(0, this.#rows - this.#reached);
    // Rows that the service did not keep are still the user's to upload.
    const isWhole = missing === 0 && notKept === 0 && this.#interrupted === undefined;
    const ending = endingOf([{ file: 0, notSent: notSent + missing, notKept, isWhole }]);
    await this.#run.end(this.#connection, ending, signal);
    this.#show({ run: { ...run, hasEnded: true } });
  }

  #leaveRun(): void {
    this.#run?.leave();
    this.#run = undefined;
    this.#runKey = newKey();
    this.#show({ run: undefined });
  }

  #failedBefore({ step, rows }: Interrupted): FailedRows {
    if (step !== 'upload-corrected') return new FailedRows();
    const { failed } = this.#state;
    const sent = new Set(rows.map(({ line }) => line));
    const others = failed.rows().filter(({ line }) => !sent.has(line));
    return FailedRows.of(others, failed.count - failed.keptCount);
  }

  #note({ outcome, sent, unsent }: Answered, step: Step): void {
    const { failed } = this.#state;
    const dryRun = step === 'dry-run';
    const isFirst = step === 'upload';
    const sentBefore = (before: Row['sent']) =>
      isFirst ? 0 : sent.filter((row) => row.sent === before).length;
    for (const row of unsent) failed.add(row);
    let notKept = 0;
    for (const { index, problems } of outcome.failed) {
      const isKept = !problems.some(
        ({ code }) => unkept.has(code) || (code === tooLarge && outcome.notKept > 0),
      );
      if (!isKept) notKept++;
      const counted = isKept ? 'counted' : 'not-kept';
      failed.add(this.checker.withAnswer(sent[index] as Row, dryRun ? undefined : counted, problems));
    }
    this.#state = {
      ...this.#state,
      waiting: undefined,
      cleared: addCleared(this.#state.cleared, outcome.cleared),
    };
    if (dryRun) return;
    const counts = addCounts(this.#state.counts, outcome.counts);
    // The answer counts batches that were not stored, and the receipt does not.
    const uncounted = notKept - outcome.notKept;
    this.#state = {
      ...this.#state,
      counts: { ...counts, received: counts.received - uncounted, failed: counts.failed - uncounted },
      notSent: this.#state.notSent + (isFirst ? unsent.length : -sentBefore(undefined)),
      notKept: this.#state.notKept + notKept - sentBefore('not-kept'),
    };
  }

  /** Runs a step. Only one step runs at a time. */
  #perform(step: Step, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (!this.#stop) this.#performed = this.#performAlone(step, work);
    return this.#performed;
  }

  async #performAlone(step: Step, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#show({
      progress: { step, share: 0, rows: 0 },
      waiting: undefined,
      error: undefined,
      finished: undefined,
      canContinue: false,
    });
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) this.#show({ error });
    } finally {
      this.#stop = undefined;
      this.#show({ progress: undefined, waiting: undefined, canContinue: this.#interrupted !== undefined });
    }
  }

  /** Reads the file's rows after the first `skip`, with corrections applied. */
  async *#read(skip: number, step: Step): AsyncGenerator<readonly Row[]> {
    for await (const answered of askWorker({ wants: 'rows', skip, ...this.#reading })) {
      if (answered.is !== 'rows') continue;
      this.#share(step, answered.share);
      yield answered.rows;
    }
  }

  #share(step: Step, share: number): void {
    const rows = this.#state.progress?.rows ?? 0;
    this.#state = { ...this.#state, progress: { step, rows, share } };
  }

  #progress(step: Step, rows: number, of = 0): void {
    const share = of > 0 ? rows / of : (this.#state.progress?.share ?? 0);
    this.#state = { ...this.#state, progress: { step, rows, share } };
    if (performance.now() - this.#shownAtMs > noticeMs) this.#show({});
  }

  #show(changed: Partial<UploadState>): void {
    this.#state = { ...this.#state, ...changed };
    this.#shownAtMs = performance.now();
    for (const listener of this.#listeners) listener();
  }
}

async function* chunked(rows: readonly Row[]): AsyncGenerator<readonly Row[]> {
  yield rows;
}

/** The codes of records in batches that were not stored. */
const unkept: ReadonlySet<string> = new Set(['not_stored', 'outcome_unknown']);
const tooLarge = 'record_too_large';

function newStep(step: Step, rows: readonly Row[] = []): Interrupted {
  const [startedMs, startedAtMs] = [Date.now(), performance.now()];
  return { step, key: newKey(), done: 0, rows, sent: new SentRows(), startedMs, startedAtMs };
}

/** Browsers offer `crypto.randomUUID` only over HTTPS and on localhost. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
