import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { Connection } from '../../connection.ts';
import { realPathOf } from '../../files/find-files.ts';
import type { components } from '../../generated/api.ts';
import type { UploadType } from '../../generated/resources.ts';
import { IntakeError } from '../../index.ts';
import { limits } from '../../limits.ts';
import { UsageError } from '../options/command.ts';
import { say } from '../terminal/terminal.ts';
import {
  type Circumstances,
  type Earlier,
  type Head,
  type JournalState,
  journalOf,
  readJournal,
  rewriteJournal,
  type Sent,
  type Version,
  versionOf,
} from './journal.ts';

type ReceiptPage = components['schemas']['ReceiptPage'];

export interface Resumable {
  readonly file: string;
  readonly type: UploadType;
  readonly now: Circumstances;
}

/**
 * Returns the state that an earlier run left for each file, or nothing for files that it has not begun. The files of a run get
 * their journals before anything is sent, and lose them after the result has been reported. A file without a journal is
 * therefore finished, unless the run was interrupted before all files had one.
 */
export async function findEarlier(
  connection: Connection,
  files: readonly Resumable[],
): Promise<ReadonlyMap<string, Earlier>> {
  const earlier = new Map<string, Earlier>();
  const without: Resumable[] = [];
  /** Whether the run of each file had created all its journals. */
  const members = new Map<string, boolean>();
  for (const one of files) {
    const found = await findOne(connection, one);
    if (found === undefined) without.push(one);
    else {
      earlier.set(one.file, found.earlier);
      const folder = dirname(realPathOf(one.file));
      for (const name of found.head.files) {
        const member = resolve(folder, name);
        members.set(member, found.earlier.isReady && members.get(member) !== false);
      }
    }
  }
  const unknown = without.filter(({ file }) => !members.has(realPathOf(file)));
  if (unknown.length > 0) throw notInterrupted(unknown, earlier.size > 0);
  for (const { file } of without) {
    if (members.get(realPathOf(file)) === false) continue;
    say(`${file} is finished: its result was reported, and its journal is removed.`);
    earlier.set(file, reported);
  }
  return earlier;
}

/** Marks a file whose result was reported by an earlier run. */
export const reported: Earlier = {
  upload: '',
  run: undefined,
  state: undefined,
  sent: new Map(),
  bytes: 0,
  isReady: true,
  version: { bytes: 0, modifiedMs: 0 },
};

/** Returns whether the journal shows that an earlier run has sent something from the file. */
export function isBegun({ state, sent }: Earlier): boolean {
  return state !== undefined || sent.size > 0;
}

export function filesFrom(file: string, all: readonly string[]): string[] {
  return all.map((other) => relative(dirname(realPathOf(file)), realPathOf(other)));
}

function notInterrupted(files: readonly Resumable[], hasOthers: boolean): UsageError {
  const names = files.map(({ file }) => file).join(', ');
  const [is, has] = files.length === 1 ? ['it is', 'has'] : ['they are', 'have'];
  return new UsageError(
    `There is nothing to resume for ${names}, which ${has} no journal: ${is} not part of an interrupted upload.`,
    hasOthers
      ? 'Resume only the other files. Then upload these without --resume, unless they are stored already.'
      : 'To upload from the start, leave out --resume. Interactions that are stored already would be stored again.',
  );
}

async function findOne(connection: Connection, { file, type, now }: Resumable) {
  const { head, isReady, state, sent: unanswered, bytes: length } = await readJournal(file);
  if (!head) return undefined;
  if (head.reading === undefined) throw ofOtherVersion(file, type);
  const version = await versionOf(file);
  const isSame = areSame(head, version);
  const noted = new Map(unanswered.map((line) => [line.sent, line]));
  const isUntouched = state === undefined && noted.size === 0;
  // A complete file has replaced the broken one, so upload it from the beginning.
  if (isUntouched || (!isSame && state?.end === 'broken' && type !== 'interactions')) {
    const upload = isSame && head.reading === now.reading ? head.upload : crypto.randomUUID();
    const earlier = { upload, run: head.run, state: undefined, sent: noted, bytes: length, isReady, version };
    return { head, earlier };
  }
  if (!isSame && !(await isWholeOf(file, state))) throw changed(file, type, state?.done ?? 0);
  await refuseOthers(connection, { file, type, head, now, state, sent: noted });
  const sent = await byThisClock(connection, noted);
  refuseForgotten(file, head.upload, [...sent.values()]);
  const earlier = { upload: head.upload, run: head.run, state, sent, isReady, version };
  if (isSame) return { head, earlier: { ...earlier, bytes: length } };
  // The rest of the upload is that of the complete file.
  const whole = state && { ...state, end: undefined, read: undefined };
  const rewritten = await rewriteJournal(file, { ...head, ready: true, ...version }, whole);
  return { head, earlier: { ...earlier, bytes: rewritten } };
}

function areSame(one: Version, other: Version): boolean {
  return one.bytes === other.bytes && one.modifiedMs === other.modifiedMs;
}

/** Throws if the file was replaced while `findEarlier` waited for the service. Must be called once the file is open. */
export async function refuseReplaced(
  file: string,
  type: UploadType,
  { version, state }: Earlier,
): Promise<void> {
  if (!areSame(version, await versionOf(file))) throw changed(file, type, state?.done ?? 0);
}

function ofOtherVersion(file: string, type: UploadType): UsageError {
  return new UsageError(
    `The upload of ${file} began with an older version of intake. Resume with that version${type === 'interactions' ? '' : ', or upload it again without --resume'}.`,
  );
}

/**
 * Returns whether a broken interactions file has been replaced by a file that starts with the same bytes, so that the upload
 * can continue.
 */
async function isWholeOf(file: string, state: JournalState | undefined): Promise<boolean> {
  if (state?.end !== 'broken' || state.read === undefined) return false;
  const { bytes, sha256 } = state.read;
  const hash = createHash('sha256');
  if (bytes > 0) for await (const chunk of createReadStream(file, { end: bytes - 1 })) hash.update(chunk);
  return sha256 === hash.digest('hex');
}

function changed(file: string, type: UploadType, done: number): UsageError {
  if (type !== 'interactions')
    return new UsageError(`${file} has changed since its upload began. Upload it again without --resume.`);
  return new UsageError(
    `${file} has changed since its upload began. ${done} of its records are done, and a new upload would store them again.`,
    `Write the records that are missing to a separate file, upload that, and remove ${journalOf(file)}.`,
  );
}

/**
 * Corrects the times of requests whose time at the service is known. It is the service that forgets keys, and this computer's
 * clock may have been wrong when it sent them.
 */
async function byThisClock(
  connection: Connection,
  sent: ReadonlyMap<number, Sent>,
): Promise<ReadonlyMap<number, Sent>> {
  if (![...sent.values()].some(({ serviceMs }) => serviceMs !== undefined)) return sent;
  const nowMs = await connection.askServiceMs();
  if (nowMs === undefined) return sent;
  const aheadMs = Date.now() - nowMs;
  return new Map(
    [...sent].map(([index, line]) => [
      index,
      line.serviceMs === undefined ? line : { ...line, atMs: line.serviceMs + aheadMs },
    ]),
  );
}

/** Throws if interactions were sent so long ago that sending them again could store them twice. */
function refuseForgotten(file: string, upload: string, unanswered: readonly Sent[]): void {
  const [first] = unanswered;
  const last = unanswered.at(-1);
  if (first === undefined || last === undefined) return;
  const agesMs = unanswered.map(({ atMs }) => Date.now() - atMs);
  // If the requests were sent in the future, the clock was set back, and their age is unknown.
  const isForgotten = Math.max(...agesMs) >= limits.keptForMs || Math.min(...agesMs) < -clockErrorMs;
  if (!isForgotten) return;
  throw new UsageError(
    `The upload of ${file} cannot be resumed: records ${first.sent + 1} to ${last.sent + last.count} were sent at ${new Date(first.atMs).toISOString()} without an answer. They may be stored, and the service can recognise them for 24 hours only.`,
    ...adviceForUnknown(
      file,
      unanswered.map(({ sent }) => `${upload}-${sent}`),
    ),
  );
}

const clockErrorMs = 3_600_000;

/** Returns how to find out what is stored, for requests that cannot be sent again. */
export function adviceForUnknown(file: string, keys: readonly string[]): readonly string[] {
  return [
    'The outcome of these requests is unknown. The last number in each key is the number of records before the request. A request is stored if this prints its receipt:',
    ...keys.map((key) => `  intake requests --idempotency-key ${key}`),
    `Write what is missing, and everything after these requests, to a separate file${file === '-' ? ' and upload that' : `, upload that, and remove ${journalOf(file)}`}.`,
  ];
}

/**
 * Refuses to upload an interactions file from the start if an earlier upload was interrupted, because the interactions that
 * the earlier upload stored would be stored twice.
 */
export async function refuseRepeat(file: string): Promise<void> {
  const { head, state, sent } = await readJournal(file);
  if (!head || (head.reading !== undefined && !state && sent.length === 0)) return;
  throw new UsageError(
    state?.end === 'finished'
      ? `An earlier upload of ${file} is complete, but its result was not reported, and its interactions would be stored again. Show the result with --resume.`
      : `An earlier upload of ${file} was interrupted, and the interactions that it stored would be stored again. Continue it with --resume.`,
    `If you want all of them again, remove ${journalOf(file)} first.`,
  );
}

interface Compared extends Resumable {
  readonly head: Head;
  readonly state: JournalState | undefined;
  readonly sent: ReadonlyMap<number, Sent>;
}

async function refuseOthers(connection: Connection, compared: Compared): Promise<void> {
  const { file, type, head, now } = compared;
  const startOver = `remove ${journalOf(file)} and upload the file without --resume`;
  // While interactions have a journal, they are not uploaded without --resume, because they could be stored twice.
  const [orAgain, ...more] =
    type === 'interactions'
      ? ['.', `To store all its interactions again instead, ${startOver}.`]
      : [', or upload it again without --resume.'];
  if (head.service !== now.service)
    throw new UsageError(
      `The upload of ${file} began at ${head.service}, not at ${now.service}. Continue there${orAgain}`,
      ...more,
    );
  const shown = head.keyId === now.keyId ? 'receipt' : await shownBy(connection, compared);
  if (shown !== 'receipt') {
    const found = shown === 'none' ? 'finds no receipt of it' : 'does not show its receipts';
    throw new UsageError(
      `The upload of ${file} began with the key ${head.keyId}, and the key ${now.keyId} ${found}. Use a key of the same organisation that may read data${orAgain}`,
      ...(shown === 'none'
        ? [`If ${now.keyId} is such a key, ${await adviceWithoutReceipt(file, startOver)}`]
        : more),
    );
  }
  if (head.reading === now.reading) return;
  throw new UsageError(
    head.typed === now.typed
      ? `The mapping file has changed since the upload of ${file} began. Restore it${orAgain}`
      : `The upload of ${file} began with other options: ${head.typed || 'none'}. Give the same ones${orAgain}`,
    ...more,
  );
}

/** Only after some time does a missing receipt show that nothing is stored, because a request may still be under way. */
async function adviceWithoutReceipt(file: string, startOver: string): Promise<string> {
  const { modifiedMs } = await versionOf(journalOf(file));
  const leftMs = modifiedMs + limits.underWayForMs - Date.now();
  if (leftMs <= 0) return `nothing is stored (receipts are kept for at least 7 days): ${startOver}.`;
  const minutes = Math.min(Math.ceil(leftMs / 60_000), limits.underWayForMs / 60_000);
  return `a request may still be under way: run the same command again in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`;
}

/**
 * Returns whether this key shows a receipt of the upload, and therefore belongs to the organisation to which the upload has
 * sent something. If nothing was sent, any key may continue, because the upload then starts with the first record.
 */
async function shownBy(
  connection: Connection,
  { head, state, sent }: Compared,
): Promise<'receipt' | 'none' | 'refused'> {
  try {
    if (state?.requestId !== undefined) {
      await connection.request({ path: `/v1/requests/${state.requestId}` });
      return 'receipt';
    }
    for (const index of sent.keys()) {
      const query = { idempotency_key: `${head.upload}-${index}`, limit: 1 };
      const { requests } = await connection.request<ReceiptPage>({ path: '/v1/requests', query });
      if (requests.length > 0) return 'receipt';
    }
    return sent.size === 0 ? 'receipt' : 'none';
  } catch (error) {
    if (error instanceof IntakeError && ['receipt_not_found', 'missing_permission'].includes(error.code))
      return 'refused';
    throw error;
  }
}
