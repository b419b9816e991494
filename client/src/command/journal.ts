import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises';
import { notWritten } from '../files/write-whole.ts';
import type { Counts } from '../index.ts';
import { UsageError } from './command.ts';

/** The progress of uploading one file. */
export interface JournalState {
  /** Records of the file that are done, sent or not. */
  readonly done: number;
  readonly counts: Counts;
  /** Records that could not be sent. */
  readonly unsent: number;
  /** The size in bytes of each file of failed records. */
  readonly failedFiles: Readonly<Record<string, number>>;
  /** `broken`: everything before the point where the file breaks off is done. */
  readonly end?: 'finished' | 'broken' | undefined;
}

/** Where and how a file is uploaded; a resumed upload must use the same. */
export interface Circumstances {
  readonly service: string;
  /** The id of the key, not the key. */
  readonly keyId: string;
  /** Everything that affects how the file is read. */
  readonly options: string;
  /** The same options as they were typed. */
  readonly typed: string;
}

interface Head extends Circumstances {
  /** The prefix of every Idempotency-Key of this upload. */
  readonly upload: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** What an earlier run has left. */
export interface Earlier {
  readonly upload: string;
  readonly state: JournalState | undefined;
  /** The length of the journal up to its last complete line. */
  readonly bytes: number;
}

/**
 * A file beside the uploaded one: a head, then a line for each answered request. The line is written after the failed
 * records of the request are on disk, so after a crash anything missing is sent again under the same Idempotency-Key.
 */
export class Journal {
  readonly upload: string;
  readonly #path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, upload: string, handle: FileHandle) {
    this.#path = path;
    this.upload = upload;
    this.#handle = handle;
  }

  static async begin(file: string, circumstances: Circumstances): Promise<Journal> {
    const path = journalOf(file);
    const head: Head = { upload: crypto.randomUUID(), ...circumstances, ...(await sizeOf(file)) };
    const handle = await open(path, 'w', 0o600).catch((error) => {
      throw notWritten(path, error);
    });
    const journal = new Journal(path, head.upload, handle);
    await journal.#append(head);
    return journal;
  }

  static async resume(file: string, { upload, bytes }: Earlier): Promise<Journal> {
    const path = journalOf(file);
    const handle = await open(path, 'a').catch((error) => {
      throw notWritten(path, error);
    });
    await handle.truncate(bytes);
    return new Journal(path, upload, handle);
  }

  /** Returns when the line is on disk: no request counts as done before. */
  async write(state: JournalState): Promise<void> {
    await this.#append(state);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #append(line: object): Promise<void> {
    try {
      await this.#handle.appendFile(`${JSON.stringify(line)}\n`);
      await this.#handle.datasync();
    } catch (error) {
      throw notWritten(this.#path, error);
    }
  }
}

/** What an earlier run has left of this file's upload; undefined if there is nothing to resume. */
export async function findEarlier(file: string, now: Circumstances): Promise<Earlier | undefined> {
  const text = await readFile(journalOf(file), 'utf8').catch(() => '');
  const lines: (Head | JournalState)[] = [];
  let end = 0;
  for (let next = text.indexOf('\n'); next >= 0; next = text.indexOf('\n', end)) {
    const line = parsed(text.slice(end, next));
    // A line that a crash left half written ends the journal.
    if (line === undefined) break;
    lines.push(line);
    end = next + 1;
  }
  const [head, ...states] = lines as [Head | undefined, ...JournalState[]];
  if (!head) return undefined;
  const state = states.at(-1);
  const { bytes, modifiedMs } = await sizeOf(file);
  if (head.bytes !== bytes || head.modifiedMs !== modifiedMs) {
    // The broken file was replaced by a whole one, so its upload begins again.
    if (state?.end === 'broken') return undefined;
    throw new UsageError(`${file} has changed since its upload began. Upload it again without --resume.`);
  }
  refuseOthers(file, head, now);
  return { upload: head.upload, state, bytes: Buffer.byteLength(text.slice(0, end)) };
}

function refuseOthers(file: string, head: Head, now: Circumstances): void {
  const advice = 'or upload it again without --resume';
  if (head.service !== now.service)
    throw new UsageError(
      `The upload of ${file} began at ${head.service}, not at ${now.service}. Go on there, ${advice}.`,
    );
  if (head.keyId !== now.keyId)
    throw new UsageError(
      `The upload of ${file} began with the key ${head.keyId}, not with ${now.keyId}. Use that key, ${advice}.`,
    );
  if (head.options === now.options) return;
  throw new UsageError(
    head.typed === now.typed
      ? `The mapping file has changed since the upload of ${file} began. Restore it, ${advice}.`
      : `The upload of ${file} began with other options: ${head.typed || 'none'}. Give the same ones, ${advice}.`,
  );
}

function parsed(line: string): Head | JournalState | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function journalOf(file: string): string {
  return `${file}.journal`;
}

export async function removeJournal(file: string): Promise<void> {
  await rm(journalOf(file), { force: true });
}

async function sizeOf(file: string): Promise<Pick<Head, 'bytes' | 'modifiedMs'>> {
  const { size, mtimeMs } = await stat(file);
  return { bytes: size, modifiedMs: mtimeMs };
}
