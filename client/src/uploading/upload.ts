import { checkedType } from '../checked-type.ts';
import type { Connection } from '../connection.ts';
import type { RecordOf, UploadType } from '../generated/resources.ts';
import type { NewInteraction } from '../interactions/interaction-batch.ts';
import { type Cut, RequestCutter } from './request-cutter.ts';
import { addCounts, type Counts, noCounts, type RecordProblem, sendCuts, type Warning } from './send-cuts.ts';

export type Records<R> = Iterable<R> | AsyncIterable<R>;

/** What is uploaded, per type. */
export interface UploadedOf extends RecordOf {
  interactions: NewInteraction;
}

export interface UploadOptions {
  /** Check everything and store nothing. */
  readonly dryRun?: boolean;
  /**
   * Names the whole upload. The same records again under the same name, within 24 hours, are answered as they were the
   * first time. Default: a new name each time.
   */
  readonly name?: string;
  readonly signal?: AbortSignal;
}

export interface FailedRecord<R> {
  /** Position among the records given, from 0. */
  readonly index: number;
  /** The record as it was given. */
  readonly record: R;
  readonly problems: readonly RecordProblem[];
}

/** One request that has been answered. */
export interface UploadStep<R> {
  readonly requestIds: readonly string[];
  /** Since the upload began. */
  readonly counts: Counts;
  /** Of this request. */
  readonly failed: readonly FailedRecord<R>[];
  readonly warnings: readonly Warning[];
}

export interface UploadResult<R> {
  readonly counts: Counts;
  readonly failed: readonly FailedRecord<R>[];
}

/**
 * An upload, not begun. Iterate over it to see each request as it is answered, in order, with the records that failed;
 * or call `finish()`. Either throws when a request fails as a whole, and what was answered before stays stored.
 */
export class Upload<T extends UploadType> implements AsyncIterable<UploadStep<UploadedOf[T]>> {
  readonly #connection: Connection;
  readonly #type: T;
  readonly #records: Records<UploadedOf[T]>;
  readonly #options: UploadOptions;

  constructor(connection: Connection, type: T, records: Records<UploadedOf[T]>, options: UploadOptions) {
    // A wrong type fails here, where the mistake is, and not when the first request is sent.
    if (type !== 'interactions') checkedType(type);
    this.#connection = connection;
    this.#type = type;
    this.#records = records;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<UploadStep<UploadedOf[T]>> {
    const { name = crypto.randomUUID(), dryRun, signal } = this.#options;
    const cuts = cutsOf(this.#type, this.#records);
    const options = { key: name, dryRun, signal };
    let counts = noCounts;
    for await (const { cut, outcome } of sendCuts(this.#connection, this.#type, cuts, options)) {
      counts = addCounts(counts, outcome.counts);
      const failed = outcome.failed.map(({ index, problems }) => ({
        index: cut.first + index,
        record: cut.items[index] as UploadedOf[T],
        problems,
      }));
      yield { requestIds: outcome.requestIds, counts, failed, warnings: outcome.warnings };
    }
  }

  /** Uploads everything. Keeps every failed record; where there may be millions of them, iterate instead. */
  async finish(): Promise<UploadResult<UploadedOf[T]>> {
    let counts = noCounts;
    const failed: FailedRecord<UploadedOf[T]>[] = [];
    for await (const step of this) {
      counts = step.counts;
      for (const each of step.failed) failed.push(each);
    }
    return { counts, failed };
  }
}

async function* cutsOf<R>(type: UploadType, records: Records<R>): AsyncGenerator<Cut<R>> {
  const cutter = new RequestCutter<R>(type);
  // Awaiting each record of an array would cost more than everything else.
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
