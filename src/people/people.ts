import type { Pool } from '../postgres/pool.ts';

export type Searched = Pick<Pool, 'query'>;

export interface Search {
  readonly organisationId: string;
  readonly for: keyof typeof requests;
}

const requests = {
  erasures: { ids: 'erasure_ids', table: 'erasures', id: 'erasure_id', mode: 'r.mode', state: 'sweeping' },
  access: {
    ids: 'access_request_ids',
    table: 'access_requests',
    id: 'access_request_id',
    mode: 'null',
    state: 'collecting',
  },
} as const;

/**
 * The `from` and `where` clauses of a query for the ids that the running sweep or collection of organisation `$1`
 * searches for.
 */
export function wantedIds(search: Search): string {
  const { ids, table, id, state } = requests[search.for];
  return `${ids} i join ${table} r on r.organisation_id = i.organisation_id and r.${id} = i.${id}
    where i.organisation_id = $1 and r.organisation_id = $1 and r.state = '${state}'`;
}

export interface Wanted {
  readonly request: string;
  readonly mode: 'anonymise' | 'delete' | null;
}

const idsPerQuery = 1_000;

export async function wantedAmong(
  db: Searched,
  search: Search,
  ids: Iterable<string>,
): Promise<ReadonlyMap<string, readonly Wanted[]>> {
  const { id, mode } = requests[search.for];
  const asked = [...new Set(ids)];
  const found: (Wanted & { readonly id: string })[] = [];
  for (let at = 0; at < asked.length; at += idsPerQuery) {
    const { rows } = await db.query<Wanted & { id: string }>({
      name: `people of ${search.for}`,
      text: `select i.id, i.${id} as request, ${mode} as mode from ${wantedIds(search)} and i.id = any ($2::text[])`,
      values: [search.organisationId, asked.slice(at, at + idsPerQuery)],
    });
    found.push(...rows);
  }
  return Map.groupBy(found, (one) => one.id);
}

export interface Found<T, P = string> {
  readonly found: readonly T[];
  /** Null after the last search. */
  readonly next: P | null;
}
