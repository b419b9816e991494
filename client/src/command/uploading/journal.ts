import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { notWritten } from '../../files/write-whole.ts';
import type { UploadType } from '../../generated/resources.ts';
import type { Counts } from '../../index.ts';
import { UsageError } from '../options/command.ts';

/** The progress of uploading one file. */
export interface JournalState {
  /** The number of records in the file that are done, whether they were sent or not. */
  readonly done: number;
  readonly counts: Counts;
  /** The number of records that could not be sent. */
  readonly unsent: number;
  /** The size in bytes of each file to which failed records are written. */
  readonly failedFiles: Readonly<Record<string, number>>;
  /** `broken` means that the file could not be read to its end, and that everything before that point is done. */
  readonly end?: 'finished' | 'broken' | undefined;
  /** The SHA-256 of a broken interactions file, used to recognise the complete file later. */
  readonly sha256?: string | undefined;
}

/** Where and how a file is uploaded. A resumed upload must use the same values. */
export interface Circumstances {
  readonly service: string;
  /** The key's id, which is its public part. */
  readonly keyId: string;
  /** All options that affect how the file is read, as JSON. */
  readonly options: string;
  /** The same options as the user typed them. */
  readonly typed: string;
}

/**
 * A request with interactions. It is recorded before it is sent, because its outcome is unknown until the response arrives.
 */
interface Sent {
  /** The index of the request's first record, and the index after its last record. */
  readonly sent: number;
  readonly end: number;
  readonly atMs: number;
}

/**
 * How long a request with interactions may be sent again. The service remembers an Idempotency-Key for 24 hours. The
 * remaining quarter of an hour is a safety margin for a slow last attempt.
 */
const resendMs = 23.75 * 3_600_000;

interface Head extends Circumstances {
  /** The prefix of every Idempotency-Key in this upload. */
  readonly upload: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** The state that an earlier run left. */
export interface Earlier {
  readonly upload: string;
  readonly state: JournalState | undefined;
  /** The requests with interactions, keyed by the index of their first record. */
  readonly sent: ReadonlyMap<number, Sent>;
  /** The journal's length up to the end of its last complete line. */
  readonly bytes: number;
}

/**
 * A file next to the uploaded file, with a header and a line for each answered request. Each line is written after the
 * request's failed records are on disk. After a crash, requests without a line are sent again with the same Idempotency-Key.
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

  /** Records a request with interactions before it is sent. */
  async writeSent(first: number, end: number): Promise<void> {
    const earlier = this.#sent.get(first);
    if (earlier === undefined) {
      const sent = { sent: first, end, atMs: Date.now() };
      this.#sent.set(first, sent);
      await this.#append(sent);
    } else if (earlier.end !== end)
      // If the records were split differently, the requests would get different keys, and the service would store the
      // records twice.
      throw new UsageError(
        `${this.#path} is from another version of intake, which sends records ${first + 1} to ${earlier.end} in one request. Resume with that version.`,
      );
  }

  /** Returns the latest time at which the request that starts with this record may be sent again. */
  resendUntilMs(first: number): number {
    return (this.#sent.get(first)?.atMs ?? Date.now()) + resendMs;
  }

  /** Writes a line and returns once it is on disk. Until then, the request does not count as done. */
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

/** Returns the state that an earlier run left for this file, or undefined if there is nothing to resume. */
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
    // A crash has left an incomplete last line.
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
  // A complete file has replaced the broken one, so upload it from the beginning.
  if (!isSame && state?.end === 'broken' && type !== 'interactions') return undefined;
  if (!isSame && !(await isWholeOf(file, head, state))) throw changed(file, type, done);
  refuseOthers(file, head, now);
  refuseForgotten(file, head.upload, unanswered);
  const sent = new Map(unanswered.map((line) => [line.sent, line]));
  const earlier = { upload: head.upload, state, sent };
  if (isSame) return { ...earlier, bytes: Buffer.byteLength(text.slice(0, end)) };
  return { ...earlier, bytes: await rewrite(file, { ...head, bytes, modifiedMs }, state) };
}

/**
 * Returns whether a broken interactions file has been replaced by a file that starts with the same bytes, so that the upload
 * can continue.
 */
async function isWholeOf(file: string, head: Head, state: JournalState | undefined): Promise<boolean> {
  return state?.end === 'broken' && state.sha256 === (await hashOf(file, head.bytes));
}

/** Returns the SHA-256 of a file or of its first bytes. */
export async function hashOf(file: string, bytes = Infinity): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { end: bytes - 1 })) hash.update(chunk);
  return hash.digest('hex');
}

function changed(file: string, type: UploadType, done: number): UsageError {
  if (type !== 'interactions')
    return new UsageError(`${file} has changed since its upload began. Upload it again without --resume.`);
  return new UsageError(
    `${file} has changed since its upload began. ${done} of its records are done, and a new upload would store them again.`,
    `Write the records that are missing to a separate file, upload that, and remove ${journalOf(file)}.`,
  );
}

/** Replaces the journal with one for the complete file, and returns the new journal's length. */
async function rewrite(file: string, head: Head, state: JournalState | undefined): Promise<number> {
  const path = journalOf(file);
  const lines = `${JSON.stringify(head)}\n${JSON.stringify({ ...state, end: undefined, sha256: undefined })}\n`;
  await writeFile(`${path}.new`, lines, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  return Buffer.byteLength(lines);
}

/** Throws if interactions were sent so long ago that sending them again could store them twice. */
function refuseForgotten(file: string, upload: string, unanswered: readonly Sent[]): void {
  const [first] = unanswered;
  const last = unanswered.at(-1);
  if (first === undefined || last === undefined || Date.now() < first.atMs + resendMs) return;
  const records = `records ${first.sent + 1} to ${last.end}`;
  // Search an hour earlier, because the service's clock may be behind.
  const from = new Date(first.atMs - 3_600_000).toISOString();
  throw new UsageError(
    `The upload of ${file} cannot be resumed: ${records} were sent at ${new Date(first.atMs).toISOString()} without an answer. They may be stored, and the service can recognise them for 24 hours only.`,
    `Everything before record ${first.sent + 1} is done. This prints each request that is stored; the idempotency_key of records ${first.sent + 1} to ${first.end} ends with -${first.sent}-${first.end}:`,
    `  intake requests --type interactions --from ${from} --limit 1000 --json | grep ${upload}`,
    `Write what is missing, and everything after record ${last.end}, to a separate file, upload that, and remove ${journalOf(file)}.`,
  );
}

/**
 * Refuses to upload an interactions file from the start if an earlier upload was interrupted, because the interactions that
 * the earlier upload stored would be stored twice.
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
      `The upload of ${file} began at ${head.service}, not at ${now.service}. Continue there, ${advice}.`,
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
