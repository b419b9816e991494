import { infiniteQueryOptions } from '@tanstack/react-query';
import { call, type Query } from './request.ts';

interface Page {
  readonly next_cursor: string | null;
}

/** Reads a list page by page. The cursors stay in memory, because a customer list's cursor is a person's id. */
export function pagesQuery<P extends Page>(path: string, query: Query) {
  return infiniteQueryOptions({
    queryKey: ['pages', path, query] as const,
    queryFn: ({ pageParam, signal }) => call<P>(path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: P) => page.next_cursor ?? undefined,
    // Refetching on focus would read every page of the list again.
    refetchOnWindowFocus: false,
  });
}
