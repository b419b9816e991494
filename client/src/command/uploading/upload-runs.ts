import { existsSync } from 'node:fs';
import type { Connection } from '../../connection.ts';
import { realPathOf } from '../../files/find-files.ts';
import { IntakeError } from '../../index.ts';
import { limits } from '../../limits.ts';
import { type RunOpening, Runs } from '../../runs.ts';
import { endingOf, type FileEnd } from '../../uploading/run-of-files.ts';
import type { FileOfRun } from '../../uploading/send-cuts.ts';
import { explain } from '../explain.ts';
import { UsageError } from '../options/command.ts';
import { isBegun } from './earlier-run.ts';
import { journalOf, type NotedRun, noteRun, readJournal } from './journal.ts';
import { type Guard, lockFiles } from './lock-files.ts';
import { isUnfinished, membersOf, newRuns, type UploadedFile, type WithRun } from './note-runs.ts';

type Run = Awaited<ReturnType<Runs['open']>>;

/** A file that is uploaded in a run. */
type RunFile = UploadedFile & WithRun;

/** What an upload knows of a file at its end. */
export interface FileResultInRun {
  readonly path: string;
  readonly unsent: number;
  readonly notKept: number;
  readonly broken?: unknown;
}

/**
 * The runs of an upload: usually one, more if there are more files than a run can have, and none if the service is of an older
 * release, if everything comes from standard input, or in a dry run.
 */
export class UploadRuns {
  readonly #runs: Runs;
  readonly #isAgain: boolean;
  readonly #signal: AbortSignal;
  readonly #guard: Guard;
  readonly #opened = new Map<string, Run>();
  /** The run that may be open although its id is not known yet. */
  #opening: NotedRun | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  /** Whether the service knows runs. */
  isSupported = true;

  constructor(
    connection: Connection,
    {
      isAgain,
      signal,
      guard,
    }: { readonly isAgain: boolean; readonly signal: AbortSignal; readonly guard: Guard },
  ) {
    this.#runs = new Runs(connection);
    this.#isAgain = isAgain;
    this.#signal = signal;
    this.#guard = guard;
  }

  /** Returns the runs, for the summary. */
  list(): readonly Pick<Run, 'run_id' | 'name' | 'status'>[] {
    return [...this.#opened.values()].map(({ run_id, name, status }) => ({ run_id, name, status }));
  }

  /** Returns what the requests of a file name, or undefined if the file has no run. */
  of(noted: NotedRun | undefined): FileOfRun | undefined {
    const run = noted && this.#opened.get(noted.key);
    return run && { runId: run.run_id, file: noted.file };
  }

  /**
   * Opens the runs of the files, or finds them if an earlier upload has opened them. If such a run has ended meanwhile, its
   * unfinished files get another one.
   */
  async open<F extends RunFile>(files: readonly F[]): Promise<F[]> {
    const others = new Map<string, F>();
    for (const members of groupsOf(files)) {
      const run = await this.#openOne(members);
      const left = members.filter(isUnfinished);
      if (run === undefined || !hasEnded(run) || left.length === 0) continue;
      const renewed = await this.#renew(left);
      for (const one of renewed) others.set(one.path, one);
      await this.#openOne(renewed);
    }
    if (this.#opened.size > 0) {
      this.#heartbeat = setInterval(() => void this.#beat(), limits.heartbeatMs);
      this.#heartbeat.unref();
    }
    return files.map((one) => others.get(one.path) ?? one);
  }

  /** Notes that a request was answered, so that the next heartbeat is due later. */
  noteAnswer(): void {
    this.#heartbeat?.refresh();
  }

  /**
   * Ends the runs, and returns what to tell the user if one of them could not be ended. A run stays open if other files of it
   * are still to be resumed, and their journals note what became of these files. Without a result, a file was not uploaded.
   */
  async end(files: readonly RunFile[], results: readonly FileResultInRun[]): Promise<readonly string[]> {
    clearInterval(this.#heartbeat);
    for (const members of groupsOf(files)) {
      const { key } = notedIn(members);
      const run = this.#opened.get(key);
      if (run === undefined || hasEnded(run)) continue;
      const ends = members.map(({ path, circumstances }): FileEnd => {
        const { unsent = 0, notKept = 0, broken } = results.find((result) => result.path === path) ?? {};
        const isWhole = broken === undefined && results.some((result) => result.path === path);
        return { file: circumstances?.run?.file ?? 0, notSent: unsent, notKept, isWhole };
      });
      await this.#guard();
      if (await noteForOthers(members, ends)) continue;
      const ending = endingOf(merged(members, ends));
      try {
        this.#opened.set(key, await this.#runs.end(run.run_id, ending, { signal: this.#signal }));
      } catch (error) {
        return [`The run ${run.run_id} could not be ended.`, ...explain(certain(error))];
      }
    }
    return [];
  }

  /** Ends the runs of an upload that has stored nothing and cannot be resumed. It does not matter much whether that works. */
  async abandon(): Promise<void> {
    clearInterval(this.#heartbeat);
    const signal = AbortSignal.timeout(limits.abandonForMs);
    try {
      const opening = this.#opening;
      if (opening)
        this.#opened.set(opening.key, await this.#runs.open(opening.opening, { key: opening.key, signal }));
      for (const run of this.#opened.values())
        if (!hasEnded(run)) await this.#runs.end(run.run_id, { status: 'failed' }, { signal });
    } catch {
      // The service shows the run as interrupted, and releases its files when they are uploaded again.
    }
  }

  async #openOne(members: readonly RunFile[]): Promise<Run | undefined> {
    if (!this.isSupported) return undefined;
    const { key, opening } = notedIn(members);
    this.#opening = notedIn(members);
    try {
      const run = await this.#openWith(opening, key, this.#isAgain, members);
      this.#opened.set(key, run);
      this.#opening = undefined;
      return run;
    } catch (error) {
      if (error instanceof UsageError || (error instanceof IntakeError && error.outcome === 'failed'))
        this.#opening = undefined;
      if (!isOlder(error)) throw error;
      this.isSupported = false;
      return undefined;
    }
  }

  /** Files of which something was sent are not uploaded twice, although another run has claimed them. */
  async #openWith(
    opening: RunOpening,
    key: string,
    again: boolean,
    members: readonly RunFile[],
  ): Promise<Run> {
    try {
      return await this.#runs.open({ ...opening, again }, { key, signal: this.#signal });
    } catch (error) {
      if (!(error instanceof IntakeError) || error.code !== 'file_uploaded') throw error;
      const uploaded = error.details.map(({ field, message }) => ({
        one: members.find(({ circumstances }) => field === `files[${circumstances?.run?.file}]`),
        message,
      }));
      const isContinued = uploaded.every(({ one }) => one?.earlier !== undefined && isBegun(one.earlier));
      if (!again && uploaded.length > 0 && isContinued) return this.#openWith(opening, key, true, members);
      throw new UsageError(
        ...uploaded.map(({ one, message }) => `${one?.path ?? 'A file of interactions'} ${message}.`),
        'Uploading it again would store each of its interactions twice. If you want that, add --again. If the upload in that run was interrupted, continue it with --resume, or upload the file again in 15 minutes.',
      );
    }
  }

  /** Gives the files a run of their own, which their journals note before it is opened. */
  async #renew<F extends RunFile>(files: readonly F[]): Promise<F[]> {
    const { opening } = notedIn(files);
    const runs = newRuns(files, opening.name, ({ circumstances }) => {
      const { run } = circumstances as { run: NotedRun };
      return run.opening.files[run.file] as RunOpening['files'][number];
    });
    const renewed: F[] = [];
    for (const one of files) {
      const run = runs.get(one.path) as NotedRun;
      const bytes = await noteRun(one.path, run, this.#guard);
      const { circumstances, earlier } = one;
      renewed.push({
        ...one,
        circumstances: circumstances && { ...circumstances, run },
        earlier: earlier && { ...earlier, bytes },
      });
    }
    return renewed;
  }

  /** Nothing depends on an answer: the next request shows too that the run is still running. */
  async #beat(): Promise<void> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(limits.heartbeatMs)]);
    for (const run of this.#opened.values())
      if (!hasEnded(run)) await this.#runs.heartbeat(run.run_id, { signal }).catch(() => {});
  }
}

function hasEnded({ status }: Run): boolean {
  return status === 'finished' || status === 'failed';
}

function groupsOf<F extends RunFile>(files: readonly F[]): F[][] {
  const groups = new Map<string, F[]>();
  for (const one of files) {
    const key = one.circumstances?.run?.key;
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()];
}

/** Returns the run of these files, which is the same for all of them. */
function notedIn([first]: readonly RunFile[]): NotedRun {
  return first?.circumstances?.run as NotedRun;
}

/**
 * Notes what became of these files in the journals of the run's other files, and returns whether there are such journals. A file
 * that another process is resuming at the moment is left alone.
 */
async function noteForOthers(members: readonly RunFile[], ends: readonly FileEnd[]): Promise<boolean> {
  const { key } = notedIn(members);
  const [first] = members as [RunFile];
  const known = new Set(members.map(({ path }) => realPathOf(path)));
  let hasOthers = false;
  for (const path of membersOf(first.path, notedIn(members))) {
    if (known.has(path) || !existsSync(journalOf(path))) continue;
    if ((await readJournal(path)).head?.run?.key !== key) continue;
    hasOthers = true;
    const lock = await lockFiles([{ path }]).catch(() => undefined);
    if (lock === undefined) continue;
    try {
      const run = (await readJournal(path)).head?.run;
      const whole = ends.filter(({ isWhole }) => isWhole);
      if (run) await noteRun(path, { ...run, ends: [...merged(members, whole)] }, lock.guard);
    } finally {
      await lock.unlock();
    }
  }
  return hasOthers;
}

/** Adds what became of the files that were resumed earlier, of which any journal of the run may know. */
function merged(members: readonly RunFile[], ends: readonly FileEnd[]): FileEnd[] {
  const earlier = members.flatMap(({ circumstances }) => circumstances?.run?.ends ?? []);
  return [...new Map([...earlier, ...ends].map((end) => [end.file, end])).values()];
}

/** A service of an older release has no such operation. */
function isOlder(error: unknown): boolean {
  return error instanceof IntakeError && error.status === 404 && error.code === 'not_found';
}

/** Returns the error without doubt about what is stored: opening and ending a run twice has the same effect as once. */
export function certain(error: unknown): unknown {
  if (!(error instanceof IntakeError) || error.outcome === 'failed') return error;
  const { code, message, status, requestId, permission, details } = error;
  const said = message.replace(/ The outcome is unknown: .*$/s, '');
  return new IntakeError(code, said, status, requestId, {
    ...(permission !== undefined && { permission }),
    details: [...details],
  });
}
