import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from './pages.ts';
import { call, type Query } from './request.ts';
import type { Interaction, InteractionPage } from './types.ts';

const path = '/user-interactions';
/** The number of interactions that live mode keeps in memory. */
export const liveRowsMax = 500;
const liveEveryMs = 3_000;
const rowsPerPage = 100;

export function interactionPagesQuery(query: Query) {
  return pagesQuery<InteractionPage>(path, { ...query, limit: rowsPerPage });
}

/** Polls for the newest interactions every few seconds and merges them into the known ones. */
export function liveInteractionsQuery(query: Query) {
  const queryKey = ['interactions', 'live', query] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ client, signal }) => {
      const known = client.getQueryData<readonly Interaction[]>(queryKey) ?? [];
      const read = (limit: number) => call<InteractionPage>(path, { query: { ...query, limit }, signal });
      const { interactions } = await read(rowsPerPage);
      if (known.length === 0 || overlap(interactions, known)) return mergeNewest(interactions, known);
      // More interactions have arrived than fit on a page. Without this request, the gap would go unnoticed.
      const more = await read(liveRowsMax);
      return mergeNewest(more.interactions, overlap(more.interactions, known) ? known : []);
    },
    refetchInterval: liveEveryMs,
    staleTime: 0,
    gcTime: 0,
  });
}

function overlap(newest: readonly Interaction[], known: readonly Interaction[]): boolean {
  const ids = new Set(known.map(({ interaction_id }) => interaction_id));
  return newest.some(({ interaction_id }) => ids.has(interaction_id));
}

/** Merges two lists without duplicates, newest first, up to the limit for live mode. */
export function mergeNewest<T extends Pick<Interaction, 'interaction_id'>>(
  newest: readonly T[],
  known: readonly T[],
): T[] {
  const ids = new Set(newest.map(({ interaction_id }) => interaction_id));
  const older = known.filter(({ interaction_id }) => !ids.has(interaction_id));
  return [...newest, ...older].slice(0, liveRowsMax);
}
