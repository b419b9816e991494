import type { Pool } from '../postgres/pool.ts';

/** The people to search for. */
export interface People {
  readonly organisationId: string;
  /** The table that contains their ids. */
  readonly idTable: 'erasure_ids' | 'access_request_ids';
  /** For each id, the request or requests that it belongs to. */
  readonly ids: ReadonlyMap<string, unknown>;
}

/** The result of searching a limited number of rows. */
export interface Found<T> {
  readonly found: readonly T[];
  /** The position from which the next search continues, or null after the last search. */
  readonly after: string | null;
}

/** A pool, or a transaction's connection. */
export type Searched = Pick<Pool, 'query'>;
