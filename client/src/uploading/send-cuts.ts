import type { Connection } from '../connection.ts';
import { isObject, isRefusal, isTooLarge, unexpected } from '../errors.ts';
import type { components } from '../generated/api.ts';
import { resources, type UploadType } from '../generated/resources.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';
import type { ByteLines } from './byte-lines.ts';
import type { Cut } from './request-cutter.ts';

type UploadAnswer = components['schemas']['UploadAnswer'];
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
  readonly counts: Counts;
  /** The failed records in their original order. `index` counts from 0 within the request. */
  readonly failed: readonly { readonly index: number; readonly problems: readonly RecordProblem[] }[];
  readonly warnings: readonly Warning[];
}

export interface SendOptions {
  /** The prefix of every Idempotency-Key. */
  readonly key: string;
  /** Called with a promise for each response, in the order in which the requests are sent. */
  readonly onSend?: ((answer: Promise<unknown>) => void) | undefined;
  /** Called when an attempt to send a request starts. */
  readonly onAttempt?: (() => void) | undefined;
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Returns the time (ms since 1970) after which a request is not sent again, because the service may have forgotten its
   * key.
   */
  readonly resendUntilMs?: ((first: number) => number) | undefined;
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
    if (result.status === 'rejected') {
      // One service process may learn of a revoked key before another, so wait for the other responses to find out whether
      // anything was stored.
      const others = Promise.all(underWay.map((one) => one.settled));
      if (isRefusal(result.reason)) await Promise.race([others, wait(limits.refusalWaitMs, signal)]);
      throw result.reason;
    }
    return { cut, outcome: result.value };
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

function sendCut(
  connection: Connection,
  type: UploadType,
  { parts, first, end }: Cut<unknown>,
  options: SendOptions,
): Promise<Outcome> {
  return sendParts(connection, type, parts, 0, parts.count, {
    ...options,
    key: `${options.key}-${first}-${end}`,
    resendUntilMs: options.resendUntilMs?.(first),
  });
}

async function sendParts(
  connection: Connection,
  type: UploadType,
  parts: ByteLines,
  from: number,
  to: number,
  options: Omit<SendOptions, 'resendUntilMs'> & { readonly resendUntilMs: number | undefined },
): Promise<Outcome> {
  if (from === to) return { requestIds: [], counts: noCounts, failed: [], warnings: [] };
  try {
    const answer = connection.request<UploadAnswer>({
      method: 'POST',
      path: resources[type].path,
      query: options.dryRun ? { dry_run: true } : undefined,
      body: bodyOf(parts.between(from, to)),
      compress: connection.compress,
      headers: options.dryRun ? {} : { 'idempotency-key': options.key },
      signal: options.signal,
      onAttempt: options.onAttempt,
      resendUntilMs: options.resendUntilMs,
    });
    options.onSend?.(answer);
    return outcomeOf(await answer, to - from);
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    if (to - from === 1) return tooLarge;
    const half = Math.ceil((from + to) / 2);
    const one = await sendParts(connection, type, parts, from, half, { ...options, key: `${options.key}a` });
    const two = await sendParts(connection, type, parts, half, to, { ...options, key: `${options.key}b` });
    return joined(one, two, half - from);
  }
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

const tooLarge: Outcome = {
  requestIds: [],
  counts: { ...noCounts, received: 1, failed: 1 },
  failed: [
    { index: 0, problems: [{ field: null, code: 'record_too_large', message: 'the record is too large' }] },
  ],
  warnings: [],
};

function joined(one: Outcome, two: Outcome, offset: number): Outcome {
  return {
    requestIds: [...one.requestIds, ...two.requestIds],
    counts: addCounts(one.counts, two.counts),
    failed: [...one.failed, ...two.failed.map((each) => ({ ...each, index: each.index + offset }))],
    warnings: [...one.warnings, ...two.warnings],
  };
}

function outcomeOf(answer: UploadAnswer, sent: number): Outcome {
  if (!isUploadAnswer(answer, sent)) throw unexpected('The answer to the upload has an unexpected form');
  const { request_id, batches } = answer;
  const failed = new Map<number, RecordProblem[]>();
  for (const { data } of batches) {
    for (const { index, field, code, message } of data.errors) {
      const problems = failed.get(index);
      if (problems) problems.push({ field, code, message });
      else failed.set(index, [{ field, code, message }]);
    }
  }
  return {
    requestIds: [request_id],
    counts: batches.map(({ data }) => data.counts).reduce(addCounts, noCounts),
    failed: [...failed].map(([index, problems]) => ({ index, problems })).sort((a, b) => a.index - b.index),
    warnings: batches.flatMap(({ data }) => data.warnings),
  };
}

/**
 * Returns whether a response is valid. Its counts are added up and its indexes are used for lookups, so both must be valid.
 */
function isUploadAnswer({ batches }: UploadAnswer, sent: number): boolean {
  return (
    haveCounts(batches) &&
    batches.every(
      ({ data: { errors, warnings } }) =>
        Array.isArray(errors) &&
        errors.every((error) => Number.isInteger(error?.index) && error.index >= 0 && error.index < sent) &&
        Array.isArray(warnings) &&
        warnings.every(isObject),
    )
  );
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
