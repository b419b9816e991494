import type { Pool } from '../postgres/pool.ts';

/** The people whose data is looked for. */
export interface People {
  readonly organisationId: string;
  /** The table that has their ids. */
  readonly idTable: 'erasure_ids' | 'access_request_ids';
  /** By id: the request that it belongs to, or several. */
  readonly ids: ReadonlyMap<string, unknown>;
}

/** What a search found in a bounded number of rows. */
export interface Found<T> {
  readonly found: readonly T[];
  /** Where the next search starts; null after the last. */
  readonly after: string | null;
}

/** A pool, or the connection of a transaction. */
export type Searched = Pick<Pool, 'query'>;
