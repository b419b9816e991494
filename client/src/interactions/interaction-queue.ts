import type { Connection } from '../connection.ts';
import { IntakeError, isTooLarge, mustSplit, unknownOutcome } from '../errors.ts';
import { limits } from '../limits.ts';
import { resendUntilMs } from '../resend-until.ts';
import {
  type Batch,
  bodyOf,
  halvesOf,
  isAfter,
  isAnswerTo,
  isSingle,
  type NewInteraction,
  newKey,
  pathOf,
  type RecordedInteraction,
  type Settler,
  settle,
} from './interaction-batch.ts';
import { KeptBatches, pageStorage } from './kept-batches.ts';

interface Queued extends Settler {
  readonly interaction: NewInteraction;
  /** The JSON and its size. Both are set once there is room in the queue. */
  part?: string;
  bytes: number;
}

/**
 * Sends interactions, one request at a time. While a request is pending, further interactions are collected for the next
 * one. When the page is hidden, which may be the last event before it is closed, the queue immediately sends as much as fits
 * into requests that outlive the page, and stores everything unanswered for the next page.
 */
export class InteractionQueue {
  readonly #connection: Connection;
  readonly #page: Document | undefined;
  readonly #kept: KeptBatches | undefined;
  #waiting: Queued[] = [];
  /** The number of waiting interactions, counted from the front of the queue, that are serialised. */
  #admitted = 0;
  /** The total size of all serialised interactions that have not been answered yet. */
  #bytes = 0;
  /** All batches in order, including those being sent. */
  #batches: Batch[] = [];
  readonly #underWay = new Set<Batch>();
  readonly #unsettled = new Set<Settler>();
  readonly #flushes = new Set<{ readonly awaited: Set<Settler>; readonly resolve: () => void }>();
  #isScheduled = false;
  #isLeaving = false;
  #isClosed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#page = globalThis.document as Document | undefined;
    const storage = pageStorage();
    this.#kept = storage && new KeptBatches(storage, connection);
    this.#batches = this.#kept?.load() ?? [];
    if (this.#batches.length > 0) this.#schedule();
    this.#page?.addEventListener('visibilitychange', this.#onVisibility);
    if (this.#page) globalThis.addEventListener?.('pagehide', this.#onVisibility);
    if (this.#page) globalThis.addEventListener?.('pageshow', this.#onVisibility);
  }

  record(interaction: NewInteraction, signal?: AbortSignal): Promise<RecordedInteraction> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed)
        throw new IntakeError('closed', 'This client was closed. Create a new one to record interactions.');
      signal?.throwIfAborted();
      const abort = () => this.#withdraw(queued, signal?.reason);
      const settled = <T>(pass: (result: T) => void) => {
        return (result: T) => {
          signal?.removeEventListener('abort', abort);
          pass(result);
          this.#settled(queued);
        };
      };
      const queued: Queued = { interaction, bytes: 0, resolve: settled(resolve), reject: settled(reject) };
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiting.push(queued);
      this.#unsettled.add(queued);
      this.#admit();
      this.#schedule();
    });
  }

  /** Resolves when everything recorded so far is stored or has failed. */
  flush(): Promise<void> {
    if (this.#unsettled.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.add({ awaited: new Set(this.#unsettled), resolve });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    this.#page?.removeEventListener('visibilitychange', this.#onVisibility);
    globalThis.removeEventListener?.('pagehide', this.#onVisibility);
    globalThis.removeEventListener?.('pageshow', this.#onVisibility);
  }

  /**
   * Removes an interaction from the queue. If it is already in a batch, it stays there, because the Idempotency-Key applies
   * to the whole body.
   */
  #withdraw(queued: Queued, reason: unknown): void {
    const at = this.#waiting.indexOf(queued);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      if (at < this.#admitted) this.#admitted--;
      this.#bytes -= queued.bytes;
    }
    queued.reject(reason);
  }

  #settled(settler: Settler): void {
    this.#unsettled.delete(settler);
    for (const flush of this.#flushes) {
      flush.awaited.delete(settler);
      if (flush.awaited.size > 0) continue;
      this.#flushes.delete(flush);
      flush.resolve();
    }
  }

  /** Sends the queue at the end of the current task, so that interactions recorded in a loop are sent together. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#next();
    });
  }

  /** Serialises interactions as long as there is room. */
  #admit(bytesMax = limits.interactionBytesQueuedMax): void {
    while (this.#admitted < this.#waiting.length && this.#bytes < bytesMax) {
      const queued = this.#waiting[this.#admitted] as Queued;
      try {
        queued.part = JSON.stringify(queued.interaction) ?? 'null';
        queued.bytes = encoder.encode(queued.part).length;
        this.#bytes += queued.bytes;
        this.#admitted++;
      } catch (error) {
        this.#waiting.splice(this.#admitted, 1);
        queued.reject(error);
      }
    }
  }

  #next(): void {
    this.#admit();
    if (this.#isLeaving) {
      this.#admit(Infinity);
      for (let batch = this.#cut(); batch; batch = this.#cut()) this.#batches.push(batch);
    }
    while (this.#underWay.size === 0 || this.#isLeaving) {
      const batch = this.#batches.find((one) => this.#isReady(one)) ?? this.#cut();
      if (batch === undefined) break;
      const bytes = [...this.#underWay].reduce((sum, one) => sum + one.bytes, batch.bytes);
      if (this.#underWay.size > 0 && bytes > limits.keepaliveBytesMax) break;
      if (!this.#batches.includes(batch)) this.#batches.push(batch);
      void this.#send(batch);
    }
    if (!this.#isLeaving) return;
    // Store the batches that are being sent after all others. If the storage fills up, they are the most likely to be
    // answered anyway.
    for (const batch of this.#batches) if (!this.#underWay.has(batch)) this.#kept?.keep(batch);
    for (const batch of this.#underWay) this.#kept?.keep(batch);
  }

  #isReady(batch: Batch): boolean {
    return !this.#underWay.has(batch) && !this.#batches.some((one) => isAfter(batch, one));
  }

  /** Takes as many waiting interactions as fit into one request, and makes a batch of them. */
  #cut(): Batch | undefined {
    const bytesMax = this.#page ? limits.keepaliveBytesMax : limits.bytesPerRequestMax;
    let count = 0;
    let bytes = '{"records":[]}'.length;
    while (count < this.#admitted && count < limits.recordsPerBatch) {
      const more = (this.#waiting[count] as Queued).bytes + 1;
      if (count > 0 && bytes + more > bytesMax) break;
      bytes += more;
      count++;
    }
    if (count === 0) return undefined;
    const settlers = this.#waiting.splice(0, count);
    this.#admitted -= count;
    const parts = settlers.map(({ part }) => part as string);
    return { key: newKey(count), parts, bytes, cutMs: Date.now(), settlers };
  }

  async #send(batch: Batch): Promise<void> {
    this.#underWay.add(batch);
    const isShared = this.#isShared(batch);
    try {
      const { body, isUnknown = false } = await this.#connection.exchange({
        method: 'POST',
        path: pathOf(batch),
        body: bodyOf(batch),
        compress: this.#connection.compress && !this.#page && batch.parts.length > 1,
        headers: { 'idempotency-key': batch.key },
        keepalive: this.#page !== undefined,
        urgent: this.#isLeaving,
        isSentBefore: isShared,
        isAnswer: (answer) => isAnswerTo(batch, answer),
        resendUntilMs: isShared ? resendUntilMs(batch.cutMs) : undefined,
      });
      settle(batch, body, isUnknown || this.#isShared(batch));
      this.#replace(batch);
      this.#kept?.forget(batch);
    } catch (thrown) {
      const error = this.#errorFor(batch, thrown);
      const isSplit = mustSplit(error) && batch.parts.length > 1;
      const failed = isSplit ? [] : [batch, ...this.#batches.filter((one) => isAfter(one, batch))];
      if (isSplit) {
        this.#replace(batch, ...halvesOf(batch));
        this.#kept?.forget(batch);
      }
      for (const one of failed) {
        for (const { reject } of one.settlers) reject(this.#errorFor(one, error));
        this.#replace(one);
        // No caller is waiting for a batch from an earlier page. Keep such a batch for the next page unless a retry cannot
        // succeed.
        if (one.settlers.length > 0 || isFinal(error)) this.#kept?.forget(one);
      }
    }
    this.#underWay.delete(batch);
    this.#next();
  }

  /** Returns whether another page may have sent the batch, perhaps while this one was waiting for an answer. */
  #isShared(batch: Batch): boolean {
    return this.#kept?.has(batch) ?? false;
  }

  #errorFor(batch: Batch, error: unknown): unknown {
    if (!(error instanceof IntakeError && this.#isShared(batch))) return error;
    return unknownOutcome(error, [batch.key], !isSingle(batch));
  }

  /** Removes an answered batch. If the batch was too large, its halves replace it. */
  #replace(batch: Batch, ...halves: readonly Batch[]): void {
    this.#batches.splice(this.#batches.indexOf(batch), 1, ...halves);
    if (halves.length === 0) for (const { bytes } of batch.settlers as Queued[]) this.#bytes -= bytes;
  }

  readonly #onVisibility = (event: Event): void => {
    const isHidden = this.#page?.visibilityState === 'hidden';
    this.#isLeaving = event.type === 'pagehide' || (isHidden && event.type !== 'pageshow');
    // Do not wait any longer before retrying requests, because they may not get another chance.
    if (this.#isLeaving) this.#connection.hurry();
    this.#next();
  };
}

const encoder = new TextEncoder();

/** Returns whether another attempt with a valid key would get the same response, even if the limits change. */
function isFinal(error: unknown): boolean {
  return error instanceof IntakeError && [400, 413, 422].includes(error.status ?? 0) && !isTooLarge(error);
}
