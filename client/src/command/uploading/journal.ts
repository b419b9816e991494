import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { notWritten } from '../../files/write-whole.ts';
import type { UploadType } from '../../generated/resources.ts';
import type { Counts } from '../../index.ts';
import { UsageError } from '../options/command.ts';

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
  /** The SHA-256 of a file of interactions that is broken, to recognise the whole one. */
  readonly sha256?: string | undefined;
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

/** A request of interactions, noted before it is sent: its outcome is unknown until it is answered. */
interface Sent {
  /** The index of its first record, and of the one after its last. */
  readonly sent: number;
  readonly end: number;
  readonly atMs: number;
}

/**
 * How long a request of interactions may be sent again. The service remembers an Idempotency-Key for 24 hours; the
 * quarter of an hour is for the last attempt, which may be slow.
 */
const resendMs = 23.75 * 3_600_000;

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
  /** The requests of interactions, by their first record. */
  readonly sent: ReadonlyMap<number, Sent>;
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
  readonly #sent: Map<number, Sent>;

  private constructor(path: string, upload: string, handle: FileHandle, sent: Iterable<[number, Sent]> = []) {
    this.#path = path;
    this.upload = upload;
    this.#handle = handle;
    this.#sent = new Map(sent);
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

  static async resume(file: string, { upload, bytes, sent }: Earlier): Promise<Journal> {
    const path = journalOf(file);
    const handle = await open(path, 'a').catch((error) => {
      throw notWritten(path, error);
    });
    await handle.truncate(bytes);
    return new Journal(path, upload, handle, sent);
  }

  /** Notes a request of interactions before it is sent. */
  async writeSent(first: number, end: number): Promise<void> {
    const earlier = this.#sent.get(first);
    if (earlier === undefined) {
      const sent = { sent: first, end, atMs: Date.now() };
      this.#sent.set(first, sent);
      await this.#append(sent);
    } else if (earlier.end !== end)
      // Another request has another key, under which the service would store the records again.
      throw new UsageError(
        `${this.#path} is of another version of intake, which sends records ${first + 1} to ${earlier.end} at once. Resume with that version.`,
      );
  }

  /** The last moment at which the request that begins with this record may be sent again. */
  resendUntilMs(first: number): number {
    return (this.#sent.get(first)?.atMs ?? Date.now()) + resendMs;
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
export async function findEarlier(
  file: string,
  type: UploadType,
  now: Circumstances,
): Promise<Earlier | undefined> {
  const text = await readFile(journalOf(file), 'utf8').catch(() => '');
  const lines: (Head | JournalState | Sent)[] = [];
  let end = 0;
  for (let next = text.indexOf('\n'); next >= 0; next = text.indexOf('\n', end)) {
    const line = parsed(text.slice(end, next));
    // A line that a crash left half written ends the journal.
    if (line === undefined) break;
    lines.push(line);
    end = next + 1;
  }
  const [head, ...rest] = lines as [Head | undefined, ...(JournalState | Sent)[]];
  if (!head) return undefined;
  const state = rest.findLast((line) => 'done' in line);
  const done = state?.done ?? 0;
  const unanswered = rest.filter((line) => 'sent' in line).filter((line) => line.end > done);
  const { bytes, modifiedMs } = await sizeOf(file);
  const isSame = head.bytes === bytes && head.modifiedMs === modifiedMs;
  // The broken file was replaced by a whole one, so its upload begins again.
  if (!isSame && state?.end === 'broken' && type !== 'interactions') return undefined;
  if (!isSame && !(await isWholeOf(file, head, state))) throw changed(file, type, done);
  refuseOthers(file, head, now);
  refuseForgotten(file, head.upload, unanswered);
  const sent = new Map(unanswered.map((line) => [line.sent, line]));
  const earlier = { upload: head.upload, state, sent };
  if (isSame) return { ...earlier, bytes: Buffer.byteLength(text.slice(0, end)) };
  return { ...earlier, bytes: await rewrite(file, { ...head, bytes, modifiedMs }, state) };
}

/** Whether a broken file of interactions was replaced by one that begins with it, so that its upload can continue. */
async function isWholeOf(file: string, head: Head, state: JournalState | undefined): Promise<boolean> {
  return state?.end === 'broken' && state.sha256 === (await hashOf(file, head.bytes));
}

/** The SHA-256 of a file, or of its first bytes. */
export async function hashOf(file: string, bytes = Infinity): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { end: bytes - 1 })) hash.update(chunk);
  return hash.digest('hex');
}

function changed(file: string, type: UploadType, done: number): UsageError {
  if (type !== 'interactions')
    return new UsageError(`${file} has changed since its upload began. Upload it again without --resume.`);
  return new UsageError(
    `${file} has changed since its upload began. ${done} of its records are done, and from its beginning they would be stored again.`,
    `Write the records that are missing to a file of its own, upload that, and remove ${journalOf(file)}.`,
  );
}

/** Replaces the journal by one of the whole file; returns its length. */
async function rewrite(file: string, head: Head, state: JournalState | undefined): Promise<number> {
  const path = journalOf(file);
  const lines = `${JSON.stringify(head)}\n${JSON.stringify({ ...state, end: undefined, sha256: undefined })}\n`;
  await writeFile(`${path}.new`, lines, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  return Buffer.byteLength(lines);
}

/** Interactions that were sent too long ago to be sent again without storing them twice. */
function refuseForgotten(file: string, upload: string, unanswered: readonly Sent[]): void {
  const [first] = unanswered;
  const last = unanswered.at(-1);
  if (first === undefined || last === undefined || Date.now() < first.atMs + resendMs) return;
  const records = `records ${first.sent + 1} to ${last.end}`;
  // The clock of the service may be behind.
  const from = new Date(first.atMs - 3_600_000).toISOString();
  throw new UsageError(
    `The upload of ${file} cannot be resumed: ${records} were sent at ${new Date(first.atMs).toISOString()} without an answer. They may be stored, and the service can recognise them for 24 hours only.`,
    `Everything before record ${first.sent + 1} is done. This prints each request that is stored; the idempotency_key of records ${first.sent + 1} to ${first.end} ends with -${first.sent}-${first.end}:`,
    `  intake requests --type interactions --from ${from} --limit 1000 --json | grep ${upload}`,
    `Write what is missing, and everything after record ${last.end}, to a file of its own, upload that, and remove ${journalOf(file)}.`,
  );
}

/**
 * Refuses to upload a file of interactions from its beginning if an earlier upload of it was interrupted: what that one
 * stored would be stored a second time.
 */
export async function refuseRepeat(file: string): Promise<void> {
  const text = await readFile(journalOf(file), 'utf8').catch(() => '');
  if (!text.includes('\n')) return;
  throw new UsageError(
    `An earlier upload of ${file} was interrupted, and the interactions that it stored would be stored again. Continue it with --resume.`,
    `If you want all of them again, remove ${journalOf(file)} first.`,
  );
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

function parsed(line: string): Head | JournalState | Sent | undefined {
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
