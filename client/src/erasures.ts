import type { Connection, Signal } from './connection.ts';
import {
  type AccessRequest,
  accessBody,
  accessRequest,
  type CountedErasure,
  countedErasure,
  type Erasure,
  erasureBodies,
  isAccessRequest,
  isErasure,
  type People,
} from './erasure-requests.ts';
import { isObject, unexpected } from './errors.ts';
import type { components, operations } from './generated/api.ts';
import { type CollectedRecord, readCollected } from './reading/read-collected.ts';
import { readPages } from './reading/read-pages.ts';

type Schemas = components['schemas'];
type Query<O extends keyof operations> = NonNullable<operations[O]['parameters']['query']>;

export type ErasureFilters = Omit<Query<'list-erasures'>, 'cursor'>;
export type AccessRequestFilters = Omit<Query<'list-access-requests'>, 'cursor'>;

/** Erasures, which never contain a person's id. */
export class Erasures {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Lists erasures, newest first. */
  list({ signal, ...filters }: ErasureFilters & Signal = {}): AsyncIterable<Erasure> {
    return readPages(this.#connection, '/v1/erasures', 'erasures', filters, signal, isErasure);
  }

  async get(erasureId: string, { signal }: Signal = {}): Promise<Erasure> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}`;
    const answer = await this.#connection.request<Erasure>({ path, signal });
    if (!isErasure(answer)) throw unexpected('The answer to the erasure has an unexpected form');
    return answer;
  }

  /**
   * Counts what `intake.erase` would change or delete, and stores nothing. Returns a result for each erasure of up to 5,000
   * ids. If `complete` is false, there are at least as many rows.
   */
  async count(people: People, { signal }: Signal = {}): Promise<CountedErasure[]> {
    const counted: CountedErasure[] = [];
    for (const body of erasureBodies(people, 'count')) {
      const call = { method: 'POST', path: '/v1/erasures', query: { dry_run: true }, signal } as const;
      const answer = await this.#connection.request<Record<string, unknown>>({
        ...call,
        body: JSON.stringify(body),
      });
      counted.push(countedErasure(answer));
    }
    return counted;
  }

  /** Returns a signed record of what an erasure removed, where and when, and what remains. The erasure must be swept. */
  async certificate(erasureId: string, { signal }: Signal = {}): Promise<Schemas['ErasureCertificate']> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}/certificate`;
    const answer = await this.#connection.request<Schemas['ErasureCertificate']>({ path, signal });
    if (!isObject(answer.certificate) || typeof answer.jws !== 'string')
      throw unexpected('The certificate has an unexpected form');
    return answer;
  }

  /** Returns the public keys for verifying certificates, as PEM. */
  async keys({ signal }: Signal = {}): Promise<readonly { key_id: string; public_key: string }[]> {
    const { keys } = await this.#connection.request<{ keys: { key_id: string; public_key: string }[] }>({
      path: '/v1/erasure-keys',
      signal,
    });
    if (!Array.isArray(keys)) throw unexpected('The list of keys has an unexpected form');
    return keys;
  }

  /** Makes the service accept a swept erasure's ids again, and returns their number. Erased data stays erased. */
  async liftSuppression(erasureId: string, { signal }: Signal = {}): Promise<{ lifted: number }> {
    const path = `/v1/erasures/${encodeURIComponent(erasureId)}/suppression`;
    const answer = await this.#connection.request<{ lifted: number }>({ method: 'DELETE', path, signal });
    if (!Number.isSafeInteger(answer.lifted))
      throw unexpected('The answer to the lift request has an unexpected form');
    return answer;
  }
}

/** Access requests, which collect everything stored about people. */
export class AccessRequests {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Requests all data about up to 5,000 people. Prefer one person per request, because records are not split by person. */
  async request({ customerIds, userIds }: People, { signal }: Signal = {}): Promise<AccessRequest> {
    const body = JSON.stringify(accessBody({ customerIds, userIds }));
    const call = { method: 'POST', path: '/v1/access-requests', body, signal } as const;
    return accessRequest(await this.#connection.request(call));
  }

  /** Lists access requests, newest first. */
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

  /** Stops collecting, and deletes what was collected. */
  async cancel(accessRequestId: string, { signal }: Signal = {}): Promise<AccessRequest> {
    const path = `/v1/access-requests/${encodeURIComponent(accessRequestId)}`;
    return accessRequest(await this.#connection.request({ method: 'DELETE', path, signal }));
  }

  /** Streams the collected records. They are available once the state is `done`, until they expire. */
  records(accessRequestId: string, { signal }: Signal = {}): AsyncIterable<CollectedRecord> {
    return readCollected(this.#connection, accessRequestId, signal);
  }
}
