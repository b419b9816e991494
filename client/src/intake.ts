import { checkedType } from './checked-type.ts';
import { Connection, type IntakeOptions, type Signal } from './connection.ts';
import { erasureBodies, type People, type RequestedErasure, requestedErasure } from './erasure-requests.ts';
import { AccessRequests, Erasures } from './erasures.ts';
import { isObject, unexpected } from './errors.ts';
import type { components, operations } from './generated/api.ts';
import type { ChangesOf, ResourceType, StoredRecordOf } from './generated/resources.ts';
import type { Interaction, NewInteraction, RecordedInteraction } from './interactions/interaction-batch.ts';
import { InteractionQueue } from './interactions/interaction-queue.ts';
import { Lake } from './lake/lake.ts';
import { type ChangeEvent, type ChangesOptions, readChanges } from './reading/read-changes.ts';
import { listIn, readAnswers, readPages } from './reading/read-pages.ts';
import { readRecords } from './reading/read-records.ts';
import { Runs } from './runs.ts';
import { haveCounts } from './uploading/send-cuts.ts';
import { type Records, Upload, type UploadedOf, type UploadOptions } from './uploading/upload.ts';

type Schemas = components['schemas'];
type Query<O extends keyof operations> = NonNullable<operations[O]['parameters']['query']>;

/** Filters, and the page size as `limit`. All pages are read, whatever the page size. */
export type RequestFilters = Omit<Query<'list-requests'>, 'cursor'>;
export type RejectionFilters = Omit<Query<'list-rejections'>, 'cursor' | 'limit'>;
export type InteractionFilters = Omit<Query<'list-interactions'>, 'cursor'>;
export type ReportFilters = Omit<Query<'report-recommendations'>, 'cursor'>;
export type RecordFilters<T extends ResourceType> = Omit<Query<`list-${T}`>, 'cursor' | 'limit'>;

/** A client for one Intake service, with the API key it uses. */
export class Intake {
  readonly requests: Requests;
  readonly runs: Runs;
  readonly rejections: Rejections;
  readonly data: Data;
  readonly interactions: Interactions;
  readonly reports: Reports;
  readonly lake: Lake;
  readonly erasures: Erasures;
  readonly accessRequests: AccessRequests;
  readonly health: Health;
  readonly #connection: Connection;
  readonly #queue: InteractionQueue;

  constructor(options: IntakeOptions) {
    this.#connection = new Connection(options);
    this.#queue = new InteractionQueue(this.#connection);
    this.requests = new Requests(this.#connection);
    this.runs = new Runs(this.#connection);
    this.rejections = new Rejections(this.#connection);
    this.data = new Data(this.#connection);
    this.interactions = new Interactions(this.#connection);
    this.reports = new Reports(this.#connection);
    this.lake = new Lake(this.#connection);
    this.erasures = new Erasures(this.#connection);
    this.accessRequests = new AccessRequests(this.#connection);
    this.health = new Health(this.#connection);
  }

  /** Uploads any number of records. Nothing is sent until you iterate over the result or call `finish()`. */
  upload<T extends ResourceType>(
    type: T,
    records: Records<UploadedOf[T]>,
    options?: UploadOptions & { readonly mode?: 'replace' },
  ): Upload<T>;
  /** Merges records with the stored ones. */
  upload<T extends ResourceType>(
    type: T,
    records: Records<ChangesOf[T]>,
    options: UploadOptions & { readonly mode: 'merge' },
  ): Upload<T, ChangesOf[T]>;
  upload<T extends ResourceType, R>(type: T, records: Records<R>, options: UploadOptions = {}): Upload<T, R> {
    return new Upload(this.#connection, type, records, options);
  }

  /**
   * Follows created and changed records in order until you leave the loop, and reconnects at the same position. Yields each
   * record in its current version with the cursor to continue from, or only the cursor after ten seconds without changes.
   */
  changes(options: ChangesOptions = {}): AsyncIterable<ChangeEvent> {
    return readChanges(this.#connection, options);
  }

  /**
   * Erases people. Once the promise resolves, nobody can read their data, and the service refuses records with their ids.
   * The service then sweeps its tables in the background; `intake.erasures` shows the progress. You can pass any number of
   * ids; each erasure, sent as one request, covers up to 5,000. If the organisation has too many ids in unfinished erasures,
   * it waits. If a request fails, earlier erasures stay in effect. Erasing the same people again has no further effect.
   * `intake.erasures.count` shows first what would be erased.
   */
  async erase(people: People, { signal }: Signal = {}): Promise<RequestedErasure[]> {
    const requested: RequestedErasure[] = [];
    for (const body of erasureBodies(people)) {
      const call = { method: 'POST', path: '/v1/erasures', body: JSON.stringify(body), signal } as const;
      requested.push(requestedErasure(await this.#connection.request(call)));
    }
    return requested;
  }

  /**
   * Records one interaction exactly once, even if it has to be sent several times. The promise resolves when the interaction
   * is stored, and rejects if it fails. With a browser key, the promise also resolves if a reference is missing, and the
   * result has no id. While a request is pending, further interactions are collected and sent together. Up to 16 MiB of JSON
   * is buffered for unanswered interactions. Further interactions wait, and you must not modify them until their promise is
   * settled. A signal withdraws a waiting interaction; one that is already being sent may still be stored.
   */
  record(interaction: NewInteraction, { signal }: Signal = {}): Promise<RecordedInteraction> {
    return this.#queue.record(interaction, signal);
  }

  /** Resolves when every interaction recorded so far is stored or has failed. */
  flush(): Promise<void> {
    return this.#queue.flush();
  }

  /** Stops accepting interactions, and resolves when every recorded interaction is stored or has failed. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}

function hasCounts({ counts }: Record<string, unknown>): boolean {
  return isObject(counts);
}

function hasReasons({ errors }: Record<string, unknown>): boolean {
  return Array.isArray(errors) && errors.every((one) => isObject(one) && typeof one.message === 'string');
}

/** The receipts of uploads and replays. */
class Requests {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Lists receipts, newest first. */
  list({ signal, ...filters }: RequestFilters & Signal = {}): AsyncIterable<Schemas['ReceiptSummary']> {
    return readPages(this.#connection, '/v1/requests', 'requests', filters, signal, hasCounts);
  }

  get(requestId: string, { signal }: Signal = {}): Promise<Schemas['Receipt']> {
    return this.#connection.request({ path: `/v1/requests/${encodeURIComponent(requestId)}`, signal });
  }

  /** Returns the number of uploads on each of the most recent days (UTC), with the outcomes of their records. */
  daily({ days, signal }: { readonly days?: number } & Signal = {}): Promise<Schemas['DaysOfUploads']> {
    const query = days === undefined ? '' : `?days=${days}`;
    return this.#connection.request({ path: `/v1/requests/daily${query}`, signal });
  }
}

/** Failed records kept by the service. */
class Rejections {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Lists rejections, oldest first. */
  list({ signal, ...filters }: RejectionFilters & Signal = {}): AsyncIterable<Schemas['Rejection']> {
    return readPages(this.#connection, '/v1/rejections', 'rejections', filters, signal, hasReasons);
  }

  /** Returns the number of rejections by type, code and field, most frequent first. */
  async summary({ signal, ...query }: RejectionFilters & Signal = {}) {
    const path = '/v1/rejections/summary';
    const answer = await this.#connection.request<Schemas['RejectionSummary']>({ path, query, signal });
    return listIn<Schemas['RejectionSummary']['rejections'][number]>(answer, 'rejections');
  }

  /** Replays all matching rejections, up to 50,000 per request, and yields the response to each request. */
  async *replay({
    signal,
    ...query
  }: RejectionFilters & Signal = {}): AsyncGenerator<Schemas['ReplayAnswer']> {
    const call = { method: 'POST', path: '/v1/rejections/replay', repeatable: false } as const;
    const answers = readAnswers<Schemas['ReplayAnswer']>(
      this.#connection,
      { ...call, query, signal },
      // Nothing was replayed although rejections remain, so another replay must be running.
      ({ batches }) => batches.length === 0,
    );
    for await (const answer of answers) {
      if (!haveCounts(answer.batches)) throw unexpected('The answer to the replay has an unexpected form');
      yield answer;
    }
  }

  /** Deletes all matching rejections, or every rejection if there is no filter. They cannot be recovered. */
  async discard({ signal, ...query }: RejectionFilters & Signal = {}): Promise<{ discarded: number }> {
    for (let discarded = 0; ; ) {
      const answer = await this.#connection.request<{ discarded: number; has_more?: boolean }>({
        method: 'DELETE',
        path: '/v1/rejections',
        query,
        repeatable: false,
        signal,
      });
      const isCount = Number.isSafeInteger(answer.discarded) && answer.discarded >= 0;
      if (!isCount || (answer.has_more && answer.discarded === 0))
        throw unexpected('The answer to the discard request has an unexpected form');
      discarded += answer.discarded;
      if (!answer.has_more) return { discarded };
    }
  }
}

/** Stored records. */
class Data {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Returns the number of records and rejections of each type. */
  async overview({ signal }: Signal = {}) {
    const answer = await this.#connection.request<Schemas['Overview']>({ path: '/v1/data', signal });
    return listIn<Schemas['Overview']['types'][number]>(answer, 'types');
  }

  get<T extends ResourceType>(type: T, id: string, { signal }: Signal = {}): Promise<StoredRecordOf[T]> {
    return this.#connection.request({
      path: `/v1/data/${checkedType(type)}/${encodeURIComponent(id)}`,
      signal,
    });
  }

  /** Streams every matching record, ordered by id. */
  list<T extends ResourceType>(
    type: T,
    { signal, ...filters }: RecordFilters<T> & Signal = {} as RecordFilters<T> & Signal,
  ): AsyncIterable<StoredRecordOf[T]> {
    return readRecords(this.#connection, checkedType(type), filters, signal);
  }
}

/** Recorded interactions. */
class Interactions {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Uploads any number of interactions, for example past ones. Works like `intake.upload`. */
  upload(
    interactions: Records<NewInteraction>,
    options: Omit<UploadOptions, 'mode'> = {},
  ): Upload<'interactions'> {
    return new Upload(this.#connection, 'interactions', interactions, options);
  }

  /** Lists interactions, newest first. */
  list({ signal, ...filters }: InteractionFilters & Signal = {}): AsyncIterable<Interaction> {
    return readPages(this.#connection, '/user-interactions', 'interactions', filters, signal);
  }

  get(interactionId: string, { signal }: Signal = {}): Promise<Interaction> {
    return this.#connection.request({
      path: `/user-interactions/${encodeURIComponent(interactionId)}`,
      signal,
    });
  }
}

/** Reports on the data. */
class Reports {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Yields the report on revenue from recommendations, page by page. Each page has the totals and some of the groups. */
  async *recommendations({
    signal,
    ...query
  }: ReportFilters & Signal = {}): AsyncGenerator<Schemas['RecommendationsReport']> {
    const path = '/v1/reports/recommendations';
    const call = { path, query, signal };
    for await (const page of readAnswers<Schemas['RecommendationsReport']>(this.#connection, call)) {
      const groups = listIn<Schemas['RecommendationsReport']['groups'][number]>(page, 'groups');
      const figures = [page.total, ...groups].map((each) => each?.recommendations);
      if (!figures.every(isObject)) throw unexpected('The report has an unexpected form');
      yield page;
    }
  }
}

/** Health checks for monitoring. Each check sends one request without retries, and throws if it fails. */
class Health {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Checks whether the process is running. */
  live({ signal }: Signal = {}): Promise<{ status: string }> {
    return this.#connection.request({ path: '/health/live', retry: false, signal });
  }

  /** Checks whether the service can handle requests. */
  ready({ signal }: Signal = {}): Promise<{ status: string }> {
    return this.#connection.request({ path: '/health/ready', retry: false, signal });
  }
}
