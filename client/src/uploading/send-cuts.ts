import type { Connection } from '../connection.ts';
import { IntakeError, isObject, isRefusal, mustSplit, unknownOutcome } from '../errors.ts';
import type { components } from '../generated/api.ts';
import { resources, type UploadType } from '../generated/resources.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';
import type { Cut } from './request-cutter.ts';

type UploadAnswer = components['schemas']['UploadAnswer'];
type ReceiptPage = components['schemas']['ReceiptPage'];
export type Counts = components['schemas']['Counts'];
export type Warning = components['schemas']['Warning'];

/** A problem with one field of a record. At most five are reported per record. */
export interface RecordProblem {
  readonly field: string | null;
  readonly code: components['schemas']['RecordError']['code'];
  readonly message: string;
}

export interface Outcome {
  /**
   * The ids of the requests that were sent. The list is empty if nothing was sent, and has several ids if the request had to
   * be split.
   */
  readonly requestIds: readonly string[];
  /** The sums of the requests' receipts. */
  readonly counts: Counts;
  /** The number of failed records that no request can contain because they are too large. No receipt counts them. */
  readonly notKept: number;
  /** The failed records in their original order. `index` counts from 0 within the request. */
  readonly failed: readonly { readonly index: number; readonly problems: readonly RecordProblem[] }[];
  readonly warnings: readonly Warning[];
  /** In a dry run: the number of stored values that would be lost, by field. */
  readonly cleared: Cleared;
}

/** The file of a run that an upload sends. */
export interface FileOfRun {
  readonly runId: string;
  /** The file's index in the run. */
  readonly file: number;
  /** Whether the upload leaves out records of the file, so that the index of a record within the upload is not its index in the file. */
  readonly isPart?: boolean | undefined;
}

export type Cleared = Readonly<Record<string, number>>;

/**
 * The requests of an upload, kept across interruptions. A request is identified by the index of its first record, which is
 * also the end of its Idempotency-Key.
 */
export interface SentRequests {
  /** Returns the number of records in a request of an earlier run that may be stored, or undefined. */
  countAt(index: number): number | undefined;
  /** Notes a request before it is sent, or before it is sent with fewer records. `serviceMs` is the service's time, if known. */
  note(index: number, count: number, serviceMs?: number): Promise<void> | void;
  /** Returns the time (ms since 1970) after which a request is not sent again, as the service may have forgotten its key. */
  resendUntilMs?(index: number): number;
}

export interface SendOptions {
  /** The prefix of every Idempotency-Key. */
  readonly key: string;
  readonly sent?: SentRequests | undefined;
  /** Whether interactions that may be stored end the upload. Otherwise they are reported like failed ones. */
  readonly refusesUnknown?: boolean | undefined;
  /** Called with 1 when a request may be stored, and with -1 if it certainly is not. */
  readonly onOpen?: ((change: 1 | -1) => void) | undefined;
  readonly dryRun?: boolean | undefined;
  readonly mode?: 'replace' | 'merge' | undefined;
  /** What the requests name as their run. Dry runs name none. */
  readonly run?: FileOfRun | undefined;
  readonly signal?: AbortSignal | undefined;
}

export const noCounts: Counts = { received: 0, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };

/**
 * Sends several requests concurrently and yields their outcomes in order. Records with the same id take effect in the order
 * in which they are sent, because a request waits for all pending requests that share an id with it.
 */
export async function* sendCuts<C extends Cut<unknown>>(
  connection: Connection,
  type: UploadType,
  cuts: AsyncIterable<C>,
  options: SendOptions,
): AsyncGenerator<{ readonly cut: C; readonly outcome: Outcome }> {
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
  const underWay: { cut: C; settled: Promise<PromiseSettledResult<Outcome>> }[] = [];
  const first = async () => {
    const { cut, settled } = underWay.shift() as (typeof underWay)[number];
    const result = await settled;
    if (result.status === 'fulfilled') return { cut, outcome: result.value };
    const others = Promise.all(underWay.map((one) => one.settled));
    // One service process may learn of a revoked key before another, so wait for the other responses to find out whether
    // anything was stored.
    if (isRefusal(result.reason)) await Promise.race([others, wait(limits.refusalWaitMs, signal)]);
    left.abort();
    const keys = underWay.map((one) => keyOf(options.key, one.cut.first));
    throw withOthers(result.reason, keys, await others, options);
  };
  try {
    for await (const cut of cuts) {
      while (
        underWay.length >= limits.requestsInFlightMax ||
        underWay.some((one) => one.cut.ids.meets(cut.ids))
      ) {
        yield await first();
      }
      const sending = sendCut(connection, type, cut, { ...options, signal });
      // Use `allSettled`, because a request that fails while another is awaited must not cause an unhandled rejection.
      underWay.push({ cut, settled: Promise.allSettled([sending]).then(([result]) => result) });
    }
    while (underWay.length > 0) yield await first();
  } finally {
    left.abort();
  }
}

/** Adds the requests to an error that were sent concurrently and are not known to have failed. */
function withOthers(
  error: unknown,
  keys: readonly string[],
  others: readonly PromiseSettledResult<Outcome>[],
  { dryRun }: SendOptions,
): unknown {
  if (!(error instanceof IntakeError) || dryRun) return error;
  const unknown = others.flatMap((other, at) => {
    if (other.status === 'fulfilled') return keys.slice(at, at + 1);
    const { reason } = other;
    if (!(reason instanceof IntakeError)) return keys.slice(at, at + 1);
    return reason.outcome === 'unknown' ? reason.idempotencyKeys : [];
  });
  return unknown.length === 0 ? error : unknownOutcome(error, [...error.idempotencyKeys, ...unknown]);
}

export function keyOf(prefix: string, index: number): string {
  return `${prefix}-${index}`;
}

function sendCut(
  connection: Connection,
  type: UploadType,
  cut: Cut<unknown>,
  options: SendOptions,
): Promise<Outcome> {
  if (cut.parts.count === 0) return Promise.resolve(nothing);
  return sendRange({ connection, type, cut, options }, { from: 0, to: cut.parts.count });
}

/** The records of a cut, of which a range is sent in one request. */
interface Sending {
  readonly connection: Connection;
  readonly type: UploadType;
  readonly cut: Cut<unknown>;
  readonly options: SendOptions;
}

interface Range {
  readonly from: number;
  readonly to: number;
  /** Whether this request is already stored or may be. */
  readonly isSentBefore?: boolean;
}

/**
 * Sends records in one request, or in several if the service has lower limits or has stored a part of them. The
 * Idempotency-Key depends only on the first record. If a duplicate of the whole request is still under way when a part of it
 * is sent, the service stores one of them and refuses the other.
 */
async function sendRange(sending: Sending, range: Range): Promise<Outcome> {
  const { connection, type, cut, options } = sending;
  const { from, to } = range;
  const index = cut.first + from;
  const earlier = options.sent?.countAt(index);
  if (earlier !== undefined && earlier < to - from) return sendInTwo(sending, range, from + earlier, true);
  const isSentBefore = range.isSentBefore ?? earlier !== undefined;
  await options.sent?.note(index, to - from, connection.serviceMs());
  const key = keyOf(options.key, index);
  try {
    const { body, isUnknown = false } = await connection.exchange({
      method: 'POST',
      path: resources[type].path,
      query: {
        ...(options.dryRun && { dry_run: true }),
        ...(options.mode === 'merge' && { mode: options.mode }),
        ...(!options.dryRun && queryOfRun(options.run, cut.indexes[from])),
      },
      body: bodyOf(cut.parts.between(from, to)),
      compress: connection.compress,
      headers: options.dryRun ? {} : { 'idempotency-key': key },
      isStoring: !options.dryRun,
      isSentBefore,
      isAnswer: (answer) => isUploadAnswer(answer, to - from),
      resendUntilMs: options.sent?.resendUntilMs?.(index),
      signal: options.signal,
      onOpen: options.onOpen,
    });
    const outcome = outcomeOf(body as UploadAnswer, isUnknown);
    if (type === 'interactions' && options.refusesUnknown)
      refuseUnfinished(outcome, key, options.sent !== undefined);
    return outcome;
  } catch (error) {
    if (mustSplit(error)) {
      if (to - from === 1) return tooLarge;
      const half = Math.ceil((from + to) / 2);
      await options.sent?.note(index, half - from, connection.serviceMs());
      return sendInTwo(sending, range, half, false);
    }
    const isOther = error instanceof IntakeError && error.code === 'idempotency_key_reused';
    const stored = isOther && !isSentBefore ? await storedUnder(connection, key, options) : undefined;
    if (stored === undefined || stored >= to - from) throw error;
    return sendInTwo(sending, range, from + stored, true);
  }
}

async function sendInTwo(
  sending: Sending,
  { from, to }: Range,
  half: number,
  isSentBefore: boolean,
): Promise<Outcome> {
  const one = await sendRange(sending, { from, to: half, isSentBefore });
  try {
    return joined(one, await sendRange(sending, { from: half, to }), half - from);
  } catch (error) {
    // The first part is answered, but the caller will not see its outcome.
    if (one.requestIds.length === 0 || !(error instanceof IntakeError) || sending.options.dryRun) throw error;
    throw unknownOutcome(error, [
      keyOf(sending.options.key, sending.cut.first + from),
      ...error.idempotencyKeys,
    ]);
  }
}

function queryOfRun(run: FileOfRun | undefined, index = 0): object {
  if (!run) return {};
  return { run_id: run.runId, file: run.file, ...(!run.isPart && { first_record: index + 1 }) };
}

/** Returns how many records were uploaded under a key, or undefined if that is not known. */
async function storedUnder(
  connection: Connection,
  key: string,
  { signal }: SendOptions,
): Promise<number | undefined> {
  const call = { path: '/v1/requests', query: { idempotency_key: key, limit: 1 }, signal };
  const answer = await connection.request<ReceiptPage>(call).catch(() => undefined);
  signal?.throwIfAborted();
  const receipt = answer?.requests?.[0];
  return receipt?.complete && receipt.counts.received > 0 ? receipt.counts.received : undefined;
}

const before = new TextEncoder().encode('{"records":[');
const after = new TextEncoder().encode(']}');

function bodyOf(records: Uint8Array): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(before.length + records.length + after.length);
  body.set(before);
  body.set(records, before.length);
  body.set(after, before.length + records.length);
  return body;
}

const nothing: Outcome = {
  requestIds: [],
  counts: noCounts,
  notKept: 0,
  failed: [],
  warnings: [],
  cleared: {},
};

const tooLarge: Outcome = {
  ...nothing,
  notKept: 1,
  failed: [
    { index: 0, problems: [{ field: null, code: 'record_too_large', message: 'the record is too large' }] },
  ],
};

function joined(one: Outcome, two: Outcome, offset: number): Outcome {
  return {
    requestIds: [...one.requestIds, ...two.requestIds],
    counts: addCounts(one.counts, two.counts),
    notKept: one.notKept + two.notKept,
    failed: [...one.failed, ...two.failed.map((each) => ({ ...each, index: each.index + offset }))],
    warnings: [...one.warnings, ...two.warnings],
    cleared: addCleared(one.cleared, two.cleared),
  };
}

function outcomeOf({ request_id, batches, cleared = {} }: UploadAnswer, isUnknown: boolean): Outcome {
  const failed = new Map<number, RecordProblem[]>();
  for (const { data } of batches) {
    for (const { index, field, code, message } of data.errors) {
      // If this attempt did not store the record, an earlier one may have.
      const problem = isUnknown && code === 'not_stored' ? outcomeUnknown : { field, code, message };
      const problems = failed.get(index);
      if (problems) problems.push(problem);
      else failed.set(index, [problem]);
    }
  }
  return {
    requestIds: [request_id],
    counts: batches.map(({ data }) => data.counts).reduce(addCounts, noCounts),
    notKept: 0,
    failed: [...failed].map(([index, problems]) => ({ index, problems })).sort((a, b) => a.index - b.index),
    warnings: batches.flatMap(({ data }) => data.warnings),
    cleared,
  };
}

/**
 * Throws if interactions may be stored, because uploading the failed records could store them twice if they counted as failed.
 * An upload that can be resumed sends them again with the same key, and interactions that are certainly not stored too.
 */
function refuseUnfinished({ failed, requestIds }: Outcome, key: string, isResumable: boolean): void {
  const isOpen = ({ code }: RecordProblem) =>
    code === 'outcome_unknown' || (isResumable && code === 'not_stored');
  const open = failed.filter(({ problems }) => problems.some(isOpen)).length;
  if (open === 0) return;
  const message = `The service had a problem with ${open} interactions.`;
  throw unknownOutcome(new IntakeError('internal', message, 500, requestIds.at(-1)), [key]);
}

const outcomeUnknown: RecordProblem = {
  field: null,
  code: 'outcome_unknown',
  message: 'may be stored, because an earlier attempt to send it was not answered',
};

/** Returns whether a response is about the records that were sent: every record is counted, and every failed one is listed. */
export function isUploadAnswer(answer: unknown, sent: number): boolean {
  if (!isObject(answer)) return false;
  const { batches } = answer as unknown as UploadAnswer;
  if (!haveCounts(batches)) return false;
  const failed = new Set<number>();
  for (const { data } of batches) {
    const { counts, errors, warnings } = data;
    if (!Array.isArray(errors) || !Array.isArray(warnings) || !warnings.every(isObject)) return false;
    if (errors.some((error) => !(Number.isInteger(error?.index) && error.index >= 0 && error.index < sent)))
      return false;
    for (const { index } of errors) failed.add(index);
    const { received, created, updated, unchanged, stale } = counts;
    if (created + updated + unchanged + stale + counts.failed !== received) return false;
  }
  const total = batches.map(({ data }) => data.counts).reduce(addCounts, noCounts);
  return total.received === sent && total.failed === failed.size;
}

/** Returns whether all batches have valid counts. */
export function haveCounts(batches: readonly { readonly data: { readonly counts: Counts } }[]): boolean {
  return (
    Array.isArray(batches) &&
    batches.every(
      (batch) =>
        isObject(batch?.data?.counts) &&
        Object.values(addCounts(noCounts, batch.data.counts)).every(Number.isSafeInteger),
    )
  );
}

export function addCleared(one: Cleared, two: Cleared): Cleared {
  const added: Record<string, number> = { ...one };
  for (const [field, count] of Object.entries(two)) added[field] = (added[field] ?? 0) + count;
  return added;
}

export function addCounts(one: Counts, two: Counts): Counts {
  return {
    received: one.received + two.received,
    created: one.created + two.created,
    updated: one.updated + two.updated,
    unchanged: one.unchanged + two.unchanged,
    stale: one.stale + two.stale,
    failed: one.failed + two.failed,
  };
}
