import { checkedType } from './checked-type.ts';
import { Connection, type IntakeOptions } from './connection.ts';
import {
  type AccessRequest,
  accessBody,
  accessRequest,
  type Erasure,
  erasureBodies,
  isAccessRequest,
  isErasure,
  type People,
  type RequestedErasure,
  requestedErasure,
} from './erasure-requests.ts';
import { isObject, unexpected } from './errors.ts';
import type { components, operations } from './generated/api.ts';
import type { ResourceType, StoredRecordOf } from './generated/resources.ts';
import type { Interaction, NewInteraction, RecordedInteraction } from './interactions/interaction-batch.ts';
import { InteractionQueue } from './interactions/interaction-queue.ts';
import { type ChangeEvent, type ChangesOptions, readChanges } from './reading/read-changes.ts';
import { type CollectedRecord, readCollected } from './reading/read-collected.ts';
import { listIn, readAnswers, readPages } from './reading/read-pages.ts';
import { readRecords } from './reading/read-records.ts';
import { haveCounts } from './uploading/send-cuts.ts';
import { type Records, Upload, type UploadedOf, type UploadOptions } from './uploading/upload.ts';

type Schemas = components['schemas'];
type Query<O extends keyof operations> = NonNullable<operations[O]['parameters']['query']>;

export interface Signal {
  readonly signal?: AbortSignal;
}

/** Filters and `limit`, the size of a page; every page is read. */
export type RequestFilters = Omit<Query<'list-requests'>, 'cursor'>;
export type RejectionFilters = Omit<Query<'list-rejections'>, 'cursor' | 'limit'>;
export type ErasureFilters = Omit<Query<'list-erasures'>, 'cursor'>;
export type AccessRequestFilters = Omit<Query<'list-access-requests'>, 'cursor'>;
export type InteractionFilters = Omit<Query<'list-interactions'>, 'cursor'>;
export type ReportFilters = Omit<Query<'report-recommendations'>, 'cursor'>;
export type RecordFilters<T extends ResourceType> = Omit<Query<`list-${T}`>, 'cursor' | 'limit'>;

/** A service and a key for it. */
export class Intake {
  readonly requests: Requests;
  readonly rejections: Rejections;
  readonly data: Data;
  readonly interactions: Interactions;
  readonly reports: Reports;
  readonly erasures: Erasures;
  readonly accessRequests: AccessRequests;
  readonly health: Health;
  readonly #connection: Connection;
  readonly #queue: InteractionQueue;

  constructor(options: IntakeOptions) {
    this.#connection = new Connection(options);
    this.#queue = new InteractionQueue(this.#connection);
    this.requests = new Requests(this.#connection);
    this.rejections = new Rejections(this.#connection);
    this.data = new Data(this.#connection);
    this.interactions = new Interactions(this.#connection);
    this.reports = new Reports(this.#connection);
    this.erasures = new Erasures(this.#connection);
    this.accessRequests = new AccessRequests(this.#connection);
    this.health = new Health(this.#connection);
  }

  /** Uploads any number of records. Nothing is sent before the result is iterated over or finished. */
  upload<T extends ResourceType>(
    type: T,
    records: Records<UploadedOf[T]>,
    options: UploadOptions = {},
  ): Upload<T> {
    return new Upload(this.#connection, type, records, options);
  }

  /**
   * Follows what is created or changed, in order, and reconnects where it was. Yields each record in its current version, with the
   * cursor to continue from, and every ten seconds without a change the cursor alone. Continues until you leave the loop.
   */
  changes(options: ChangesOptions = {}): AsyncIterable<ChangeEvent> {
    return readChanges(this.#connection, options);
  }

  /**
   * Erases people. When it resolves, nobody can read anything of them and the service refuses records that name them; it
   * removes the rest in the background, and `intake.erasures` shows how far that is. Any number of ids: each 5,000 are a request
   * and an erasure. If one fails, the earlier ones stand. Erase the same people again, which changes nothing for them.
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
   * Records one interaction, once, however often it has to be sent. Resolves when it is stored, and rejects with its own
   * error. With a browser key it also resolves if a reference is missing, and the result has no id. While a request is under way, others gather and are sent together. Up to 16 MiB of JSON is held for
   * interactions without an answer; one that is recorded then waits until there is room, and must not be changed until its
   * promise is settled. A signal withdraws an interaction that waits; one that is being sent may be stored all the same.
   */
  record(interaction: NewInteraction, { signal }: Signal = {}): Promise<RecordedInteraction> {
    return this.#queue.record(interaction, signal);
  }

  /** Resolves when every interaction recorded so far is stored or has failed. */
  flush(): Promise<void> {
    return this.#queue.flush();
  }

  /** Takes no more interactions, and resolves when those recorded are stored or have failed. */
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

  /** The newest first. */
  list({ signal, ...filters }: RequestFilters & Signal = {}): AsyncIterable<Schemas['ReceiptSummary']> {
    return readPages(this.#connection, '/v1/requests', 'requests', filters, signal, hasCounts);
  }

  get(requestId: string, { signal }: Signal = {}): Promise<Schemas['Receipt']> {
    return this.#connection.request({ path: `/v1/requests/${encodeURIComponent(requestId)}`, signal });
  }

  /** How many uploads there were on each of the last days, in UTC, and what became of their records. */
  daily({ days, signal }: { readonly days?: number } & Signal = {}): Promise<Schemas['DaysOfUploads']> {
    const query = days === undefined ? '' : `?days=${days}`;
    return this.#connection.request({ path: `/v1/requests/daily${query}`, signal });
  }
}

/** Failed records that the service keeps. */
class Rejections {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The oldest first. */
  list({ signal, ...filters }: RejectionFilters & Signal = {}): AsyncIterable<Schemas['Rejection']> {
    return readPages(this.#connection, '/v1/rejections', 'rejections', filters, signal, hasReasons);
  }

  /** How many there are of each type, code and field, the most frequent first. */
  async summary({ signal, ...query }: RejectionFilters & Signal = {}) {
    const path = '/v1/rejections/summary';
    const answer = await this.#connection.request<Schemas['RejectionSummary']>({ path, query, signal });
    return listIn<Schemas['RejectionSummary']['rejections'][number]>(answer, 'rejections');
  }

  /** Tries all that match again. Yields each answer of the service, which takes up to 50,000 at a time. */
  async *replay({
    signal,
    ...query
  }: RejectionFilters & Signal = {}): AsyncGenerator<Schemas['ReplayAnswer']> {
    const call = { method: 'POST', path: '/v1/rejections/replay', repeatable: false } as const;
    const answers = readAnswers<Schemas['ReplayAnswer']>(
      this.#connection,
      { ...call, query, signal },
      // Nothing was tried and more is left: another replay has its turn.
      ({ batches }) => batches.length === 0,
    );
    for await (const answer of answers) {
      if (!haveCounts(answer.batches)) throw unexpected('The replay was answered with something else');
      yield answer;
    }
  }

  /** Removes all that match, without a filter all there are. There is no other copy of them. */
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
        throw unexpected('The removal was answered with something else');
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

  /** How many records and rejections there are of each type. */
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

  /** Every record that matches, in the order of their ids, as one stream. */
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

  /** Uploads any number of interactions, for example those of the past. Works like `intake.upload`. */
  upload(interactions: Records<NewInteraction>, options: UploadOptions = {}): Upload<'interactions'> {
    return new Upload(this.#connection, 'interactions', interactions, options);
  }

  /** The newest first. */
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

/** What the data says. */
class Reports {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** What recommendations earn. Yields the report page by page: each has the totals, and some of the groups. */
  async *recommendations({
    signal,
    ...query
  }: ReportFilters & Signal = {}): AsyncGenerator<Schemas['RecommendationsReport']> {
    const path = '/v1/reports/recommendations';
    const call = { path, query, signal };
    for await (const page of readAnswers<Schemas['RecommendationsReport']>(this.#connection, call)) {
      const groups = listIn<Schemas['RecommendationsReport']['groups'][number]>(page, 'groups');
      const figures = [page.total, ...groups].map((each) => each?.recommendations);
      if (!figures.every(isObject)) throw unexpected('The report was answered with something else');
      yield page;
    }
  }
}

/** Erasures of people. None of them shows an id of a person. */
class Erasures {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The newest first. */
  list({ signal, ...filters }: ErasureFilters & Signal = {}): AsyncIterable<Erasure> {
    return readPages(this.#connection, '/v1/erasures', 'erasures', filters, signal, isErasure);
  }

  async get(erasureId: string, { signal }: Signal = {}): Promise<Erasure> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}`;
    const answer = await this.#connection.request<Erasure>({ path, signal });
    if (!isErasure(answer)) throw unexpected('The erasure was answered with something else');
    return answer;
  }

  /** What an erasure removed where and when, and what remains, signed; of an erasure that is swept. */
  async certificate(erasureId: string, { signal }: Signal = {}): Promise<Schemas['ErasureCertificate']> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}/certificate`;
    const answer = await this.#connection.request<Schemas['ErasureCertificate']>({ path, signal });
    if (!isObject(answer.certificate) || typeof answer.jws !== 'string')
      throw unexpected('The certificate was answered with something else');
    return answer;
  }

  /** The public keys that certificates are signed with, as PEM. */
  async keys({ signal }: Signal = {}): Promise<readonly { key_id: string; public_key: string }[]> {
    const { keys } = await this.#connection.request<{ keys: { key_id: string; public_key: string }[] }>({
      path: '/v1/erasure-keys',
      signal,
    });
    if (!Array.isArray(keys)) throw unexpected('The keys were answered with something else');
    return keys;
  }

  /**
   * Lets the people of an erasure that is swept come back, and returns how many ids were refused until now: 0 if it was lifted
   * before. What was erased stays erased.
   */
  async liftSuppression(erasureId: string, { signal }: Signal = {}): Promise<{ lifted: number }> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}/suppression`;
    const answer = await this.#connection.request<{ lifted: number }>({ method: 'DELETE', path, signal });
    if (!Number.isSafeInteger(answer.lifted))
      throw unexpected('The lifting was answered with something else');
    return answer;
  }
}

/** What is stored about people, to be given to them. */
class AccessRequests {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Asks for everything about up to 5,000 people, best about one: the records do not say whose they are. */
  async request({ customerIds, userIds }: People, { signal }: Signal = {}): Promise<AccessRequest> {
    const body = JSON.stringify(accessBody({ customerIds, userIds }));
    const call = { method: 'POST', path: '/v1/access-requests', body, signal } as const;
    return accessRequest(await this.#connection.request(call));
  }

  /** The newest first. */
  list({ signal, ...filters }: AccessRequestFilters & Signal = {}): AsyncIterable<AccessRequest> {
    return readPages(
      this.#connection,
      '/v1/access-requests',
      'access_requests',
      filters,
      signal,
      isAccessRequest,
    );
  }

  async get(accessRequestId: string, { signal }: Signal = {}): Promise<AccessRequest> {
    const path = `/v1/access-requests/${encodeURIComponent(accessRequestId)}`;
    return accessRequest(await this.#connection.request({ path, signal }));
  }

  /** What was collected, as one stream, once its state is `done` and until it expires. */
  records(accessRequestId: string, { signal }: Signal = {}): AsyncIterable<CollectedRecord> {
    return readCollected(this.#connection, accessRequestId, signal);
  }
}

/** For monitoring. Each asks once, and throws what is wrong. */
class Health {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whether the process runs. */
  live({ signal }: Signal = {}): Promise<{ status: string }> {
    return this.#connection.request({ path: '/health/live', retry: false, signal });
  }

  /** Whether it can serve. */
  ready({ signal }: Signal = {}): Promise<{ status: string }> {
    return this.#connection.request({ path: '/health/ready', retry: false, signal });
  }
}
