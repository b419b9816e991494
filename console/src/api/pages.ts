import { infiniteQueryOptions } from '@tanstack/react-query';
import { call, type Query } from './request.ts';

interface Page {
  readonly next_cursor: string | null;
}

/** A list that is read page by page. The cursors stay in memory: the cursor of a list of customers is a person's id. */
export function pagesQuery<P extends Page>(path: string, query: Query) {
  return infiniteQueryOptions({
    queryKey: ['pages', path, query] as const,
    queryFn: ({ pageParam, signal }) => call<P>(path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: P) => page.next_cursor ?? undefined,
    // Would read every page again.
    refetchOnWindowFocus: false,
  });
}
