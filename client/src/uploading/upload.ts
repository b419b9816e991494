import { checkedType } from '../checked-type.ts';
import type { Connection } from '../connection.ts';
import { IntakeError, partlyStored } from '../errors.ts';
import type { RecordOf, UploadType } from '../generated/resources.ts';
import type { NewInteraction } from '../interactions/interaction-batch.ts';
import { limits } from '../limits.ts';
import { type Cut, RequestCutter } from './request-cutter.ts';
import {
  addCounts,
  type Counts,
  keyOf,
  noCounts,
  type Outcome,
  type RecordProblem,
  sendCuts,
  type Warning,
} from './send-cuts.ts';

export type Records<R> = Iterable<R> | AsyncIterable<R>;

/** The fields of an uploaded record or interaction, by type. */
export interface UploadedOf extends RecordOf {
  interactions: NewInteraction;
}

export interface UploadOptions {
  /** Check everything but store nothing. */
  readonly dryRun?: boolean;
  /**
   * With `merge`, a field that a record leaves out keeps its stored value, and null clears it. Default: `replace`, which stores
   * each record as a whole. Interactions are never merged.
   */
  readonly mode?: 'replace' | 'merge';
  /**
   * The name of the whole upload. Uploading the same records with the same name within 24 hours of the first time returns the
   * first result again, and records added at the end are stored, for which the key must be allowed to read data. It has up to
   * 240 Latin-1 characters. Default: a new name each time.
   */
  readonly name?: string;
  readonly signal?: AbortSignal;
}

export interface FailedRecord<R> {
  /** The record's position in the input, from 0. */
  readonly index: number;
  /** The record as passed by the caller. */
  readonly record: R;
  readonly problems: readonly RecordProblem[];
}

/** The counts of an upload. `failed` does not include the records whose outcome is `unknown`: they may be stored. */
export interface UploadCounts extends Counts {
  readonly unknown: number;
}

/** The outcome of one request. */
export interface UploadStep<R> {
  readonly requestIds: readonly string[];
  /** The counts since the upload started. */
  readonly counts: UploadCounts;
  /** The failed records in this request, and those with the problem `outcome_unknown`. */
  readonly failed: readonly FailedRecord<R>[];
  readonly warnings: readonly Warning[];
}

export interface UploadResult<R> {
  readonly counts: UploadCounts;
  readonly failed: readonly FailedRecord<R>[];
}

/**
 * An upload that has not started. Iterate over it to get the outcome of each request, in order, or call `finish()`. Both
 * throw if a request fails as a whole; records from earlier requests stay stored. If the error's `outcome` is `unknown`, other
 * records may be stored too.
 */
export class Upload<T extends UploadType, R = UploadedOf[T]> implements AsyncIterable<UploadStep<R>> {
  readonly #connection: Connection;
  readonly #type: T;
  readonly #records: Records<R>;
  readonly #options: UploadOptions;

  constructor(connection: Connection, type: T, records: Records<R>, options: UploadOptions) {
    // An invalid type should fail here, where the mistake is, rather than when the first request is sent.
    if (type !== 'interactions') checkedType(type);
    if (options.name !== undefined && !allowedName.test(options.name))
      throw new TypeError(
        'name must have at most 240 characters, all of them Latin-1 and printable, because each Idempotency-Key begins with it',
      );
    this.#connection = connection;
    this.#type = type;
    this.#records = records;
    this.#options = options;
  }

  [Symbol.asyncIterator](): AsyncGenerator<UploadStep<R>> {
    return this.#steps(this.#options.name ?? crypto.randomUUID());
  }

  async *#steps(name: string): AsyncGenerator<UploadStep<R>> {
    const { dryRun, mode, signal } = this.#options;
    const cuts = cutsOf(this.#type, this.#records);
    const options = { key: name, dryRun, mode, signal };
    let counts = none;
    for await (const { cut, outcome } of sendCuts(this.#connection, this.#type, cuts, options)) {
      const unknown = outcome.failed.filter(isUnknown).length;
      const { notKept } = outcome;
      const added = addCounts(addCounts(counts, outcome.counts), {
        ...noCounts,
        received: notKept,
        failed: notKept,
      });
      counts = { ...added, failed: added.failed - unknown, unknown: counts.unknown + unknown };
      const failed = outcome.failed.map(({ index, problems }) => ({
        index: cut.first + index,
        record: cut.items[index] as R,
        problems,
      }));
      yield { requestIds: outcome.requestIds, counts, failed, warnings: outcome.warnings };
    }
  }

  /**
   * Uploads everything and returns every failed record. If there may be millions of them, iterate instead. If it throws after
   * requests were answered, the error's `outcome` is `unknown`, and its message has the number of stored records and the name
   * with which to continue.
   */
  async finish(): Promise<UploadResult<R>> {
    const { name = crypto.randomUUID(), dryRun } = this.#options;
    let counts = none;
    const failed: FailedRecord<R>[] = [];
    const keys: string[] = [];
    const startedMs = Date.now();
    let firstMs = Infinity;
    try {
      for await (const step of this.#steps(name)) {
        // If an earlier upload with this name has sent the request, the answer repeats the id from that time.
        for (const id of step.requestIds) firstMs = Math.min(firstMs, timeOf(id) ?? startedMs);
        if (step.requestIds.length > 0) keys.push(keyOf(name, counts.received));
        counts = step.counts;
        for (const each of step.failed) failed.push(each);
      }
      return { counts, failed };
    } catch (error) {
      const mayBeStored = counts.received - counts.failed;
      if (dryRun || mayBeStored === 0 || !(error instanceof IntakeError)) throw error;
      throw partlyStored(error, {
        name,
        stored: mayBeStored - counts.unknown,
        keys,
        untilMs: firstMs + limits.keptForMs,
        nowMs: this.#connection.serviceMs() ?? Date.now(),
      });
    }
  }
}

/**
 * HTTP headers can have these characters. The service accepts keys of 255 characters, which leaves 15 for the index of a record.
 */
const allowedName = /^[ -~\xa0-\xff]{0,240}$/;

const none: UploadCounts = { ...noCounts, unknown: 0 };

/** Returns the time of a request id, which is a UUID version 7. */
function timeOf(requestId: string): number | undefined {
  const [, first, second] = /^([0-9a-f]{8})-([0-9a-f]{4})-7/i.exec(requestId) ?? [];
  return first === undefined ? undefined : Number.parseInt(`${first}${second}`, 16);
}

function isUnknown({ problems }: Outcome['failed'][number]): boolean {
  return problems.some(({ code }) => code === 'outcome_unknown');
}

async function* cutsOf<R>(type: UploadType, records: Records<R>): AsyncGenerator<Cut<R>> {
  const cutter = new RequestCutter<R>(type);
  // Avoid awaiting each record in an array, which would cost more time than everything else.
  if (Symbol.asyncIterator in records) {
    for await (const record of records) {
      const cut = cutter.add(record, record);
      if (cut) yield cut;
    }
  } else {
    for (const record of records) {
      const cut = cutter.add(record, record);
      if (cut) yield cut;
    }
  }
  const last = cutter.take();
  if (last) yield last;
}
