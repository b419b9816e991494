import { constants, lstatSync } from 'node:fs';
import {
  appendFile,
  type FileHandle,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { realPathOf } from '../../files/find-files.ts';
import { notWritten } from '../../files/write-whole.ts';
import type { Counts } from '../../index.ts';
import { limits } from '../../limits.ts';
import type { SkippedRow } from '../../parsing/columns/skipped-rows.ts';
import type { BytesRead } from '../../parsing/opened-file.ts';
import type { RunOpening } from '../../runs.ts';
import type { FileEnd } from '../../uploading/run-of-files.ts';
import type { SentRequests } from '../../uploading/send-cuts.ts';
import { UsageError } from '../options/command.ts';
import type { Guard } from './lock-files.ts';

/** The progress of uploading one file. */
export interface JournalState {
  /** The number of records in the file that are done, whether they were sent or not. */
  readonly done: number;
  readonly counts: Counts;
  /** The number of records that could not be sent. */
  readonly unsent: number;
  /** The number of records that are too large for a request, of which the service has no receipt. */
  readonly notKept: number;
  /** The size in bytes of each file to which failed records are written. */
  readonly failedFiles: Readonly<Record<string, number>>;
  /** The id of the last answered request, whose receipt only keys of the same organisation can read. */
  readonly requestId?: string | undefined;
  /** `broken` means that the file could not be read to its end, and that everything before that point is done. */
  readonly end?: 'finished' | 'broken' | undefined;
  /** What was read of a broken interactions file, used to recognise the complete file later. */
  readonly read?: BytesRead | undefined;
  /** What the result shows of a file that is read to its end. */
  readonly keptFields?: readonly string[];
  readonly skippedRows?: readonly SkippedRow[];
}

/** Where and how a file is uploaded. A resumed upload must use the same values. */
export interface Circumstances {
  readonly service: string;
  /** The key's id, which is its public part. */
  readonly keyId: string;
  /** All options that affect how the file is read, as JSON. */
  readonly reading: string;
  /** The same options as the user typed them. */
  readonly typed: string;
  /** All files of the run, relative to the folder of this one. */
  readonly files: readonly string[];
  /** A line of its own may name another run later. */
  readonly run?: NotedRun | undefined;
}

/** The run that the service shows. When the upload is resumed, it is opened again with the same key and the same content. */
export interface NotedRun {
  readonly key: string;
  readonly opening: RunOpening;
  /** The index of the journal's file in the run. */
  readonly file: number;
  /** The run's files, relative to the folder of this one. */
  readonly paths: readonly string[];
  /** What became of the files that were resumed without this one. */
  readonly ends?: readonly FileEnd[] | undefined;
}

/**
 * A request with interactions. It is recorded before it is sent, because its outcome is unknown until the response arrives.
 */
export interface Sent {
  /** The index of the request's first record, and the number of its records. A later line for the same index replaces it. */
  readonly sent: number;
  readonly count: number;
  readonly atMs: number;
  /** The service's time, if it was known. It shows the request's age even if this computer's clock was wrong. */
  readonly serviceMs?: number | undefined;
}

/** The size and the time of a file, which change if it is written or replaced. */
export type Version = Pick<Head, 'bytes' | 'modifiedMs'>;

export interface Head extends Circumstances {
  /** Whether all files of the run have journals. Until then, nothing is sent. A line of its own may say so later. */
  readonly ready?: boolean;
  /** The prefix of every Idempotency-Key in this upload. */
  readonly upload: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** What an earlier run left, or a journal that has just been created. */
export interface Earlier {
  readonly upload: string;
  readonly run: NotedRun | undefined;
  readonly state: JournalState | undefined;
  /** The unanswered requests with interactions, keyed by the index of their first record. */
  readonly sent: ReadonlyMap<number, Sent>;
  /** The journal's length up to the end of its last complete line. */
  readonly bytes: number;
  /** Whether all files of the run had journals. */
  readonly isReady: boolean;
  /** The version of the file that is continued. */
  readonly version: Version;
}

/**
 * A file next to the uploaded file, with a header and a line for each answered request. Each line is written after the
 * request's failed records are on disk. After a crash, requests without a line are sent again with the same Idempotency-Key.
 */
export class Journal implements SentRequests {
  readonly upload: string;
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #earlier: ReadonlyMap<number, Sent>;
  readonly #guard: Guard;
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    path: string,
    upload: string,
    handle: FileHandle,
    earlier: ReadonlyMap<number, Sent>,
    guard: Guard,
  ) {
    this.#path = path;
    this.upload = upload;
    this.#handle = handle;
    this.#earlier = earlier;
    this.#guard = guard;
  }

  /** Creates or replaces the journal. A run creates the journals of all its files before it sends the first request. */
  static async begin(
    file: string,
    circumstances: Circumstances,
    upload: string,
    ready: boolean,
    guard: Guard,
  ): Promise<Journal> {
    const path = journalOf(file);
    const head: Head = { upload, ready, ...circumstances, ...(await versionOf(file)) };
    const handle = await open(`${path}.new`, emptyAndAppend, 0o600).catch((error) => {
      throw notWritten(path, error);
    });
    const journal = new Journal(path, upload, handle, new Map(), guard);
    try {
      await journal.#append(head);
      await guard();
      await rename(`${path}.new`, path);
      return journal;
    } catch (error) {
      await journal.close();
      await rm(`${path}.new`, { force: true });
      throw notWritten(path, error);
    }
  }

  static async resume(file: string, { upload, bytes, sent }: Earlier, guard: Guard): Promise<Journal> {
    const path = journalOf(file);
    const handle = await open(path, 'a').catch((error) => {
      throw notWritten(path, error);
    });
    try {
      await guard();
      await handle.truncate(bytes);
      // The time of the journal shows how long ago the last request may have been sent.
      await handle.utimes(new Date(), new Date());
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new Journal(path, upload, handle, sent, guard);
  }

  countAt(index: number): number | undefined {
    return this.#earlier.get(index)?.count;
  }

  async note(index: number, count: number, serviceMs?: number): Promise<void> {
    const earlier = this.#earlier.get(index);
    if (earlier === undefined)
      await this.#append({ sent: index, count, atMs: Date.now(), serviceMs } satisfies Sent);
    else if (earlier.count !== count)
      // If the records were split differently, the service would store some of them twice.
      throw new UsageError(
        `${this.#path} is from another version of intake, which sends ${earlier.count} records from record ${index + 1} in one request. Resume with that version.`,
      );
    // A run that takes the files over from now on finds the request in the journal.
    await this.#guard();
  }

  resendUntilMs(index: number): number {
    return (this.#earlier.get(index)?.atMs ?? Date.now()) + limits.keptForMs;
  }

  /** Writes a line and returns once it is on disk. Until then, the request does not count as done. */
  async write(state: JournalState): Promise<void> {
    await this.#append(state);
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#handle.close();
  }

  /** Writes one line after the other. After a line that could not be written completely, no other line may follow. */
  #append(line: object): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      await this.#guard();
      try {
        await this.#handle.appendFile(`${JSON.stringify(line)}\n`);
        await this.#handle.datasync();
      } catch (error) {
        throw notWritten(this.#path, error);
      }
    });
    return this.#writing;
  }
}

/** Another run may continue a journal, so nothing may be written except at its end. */
const emptyAndAppend = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;

/** Notes that all files of the run have journals. */
export async function markReady(file: string): Promise<void> {
  const path = journalOf(file);
  await appendFile(path, `${JSON.stringify({ ready: true })}\n`, { flush: true }).catch((error) => {
    throw notWritten(path, error);
  });
}

/** Notes the run of a file whose journal exists, and returns the journal's new length. */
export async function noteRun(file: string, run: NotedRun, guard: Guard): Promise<number> {
  const path = journalOf(file);
  const { bytes } = await readJournal(file);
  const line = `${JSON.stringify({ run })}\n`;
  await guard();
  try {
    await truncate(path, bytes);
    await appendFile(path, line, { flush: true });
  } catch (error) {
    throw notWritten(path, error);
  }
  return bytes + Buffer.byteLength(line);
}

/** Replaces a journal, and returns the new one's length. */
export async function rewriteJournal(file: string, head: Head, state?: JournalState): Promise<number> {
  const path = journalOf(file);
  const lines = [head, ...(state ? [state] : [])].map((line) => `${JSON.stringify(line)}\n`).join('');
  await writeFile(`${path}.new`, lines, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  return Buffer.byteLength(lines);
}

/** Reads a journal's complete lines, and the length up to the end of the last one. A journal that does not exist is empty. */
export async function readJournal(file: string) {
  const text = await readFile(journalOf(file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new UsageError(
      `${journalOf(file)} cannot be read (${error.code}); check that you may read it, because it shows what is stored`,
    );
  });
  const lines: (Head | JournalState | Sent)[] = [];
  let end = 0;
  for (let next = text.indexOf('\n'); next >= 0; next = text.indexOf('\n', end)) {
    const line = parsed(text.slice(end, next));
    // A crash has left an incomplete last line.
    if (line === undefined) break;
    lines.push(line);
    end = next + 1;
  }
  const [first, ...rest] = lines as [Head | undefined, ...(JournalState | Sent)[]];
  const run = (lines as Partial<Head>[]).findLast((line) => line.run)?.run;
  const head = first && { ...first, run };
  const isReady = (head?.ready ?? false) || rest.some((line) => 'ready' in line);
  const last = rest.findLast((line) => 'done' in line);
  // Earlier versions did not count these records apart.
  const state = last && { ...last, notKept: last.notKept ?? 0 };
  const sent = rest.filter((line) => 'sent' in line).filter((line) => line.sent >= (state?.done ?? 0));
  return { head, isReady, state, sent, bytes: Buffer.byteLength(text.slice(0, end)) };
}

function parsed(text: string): Head | JournalState | Sent | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The journal of a symbolic link is the journal of the file. */
export function journalOf(file: string): string {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink();
  return `${isLink ? realPathOf(file) : file}.journal`;
}

export async function removeJournals(files: readonly string[], guard: Guard): Promise<void> {
  await guard();
  for (const file of files) await rm(journalOf(file), { force: true });
}

/**
 * Removes the journals of a run that has stored nothing. Before that, they become journals that are not ready. Otherwise, if
 * this is interrupted, the files without a journal would count as finished. If that fails, or if another run uses the journals,
 * they are kept. Returns whether they are removed.
 */
export async function removeUnsent(files: readonly string[], guard: Guard): Promise<boolean> {
  try {
    await guard();
    for (const file of files) {
      const { head, isReady } = await readJournal(file);
      if (head && isReady) await rewriteJournal(file, { ...head, ready: false });
    }
    await removeJournals(files, guard);
    return true;
  } catch {
    return false;
  }
}

export async function versionOf(file: string): Promise<Version> {
  const { size, mtimeMs } = await stat(file);
  return { bytes: size, modifiedMs: mtimeMs };
}
