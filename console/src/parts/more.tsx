interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Reads the next page of a list. */
export function More({ query, shown }: { readonly query: Paged; readonly shown: string }) {
  return (
    <p className="more">
      <span className="muted" role="status">
        {shown}
        {query.hasNextPage ? '' : ' in total'}
      </span>
      {query.hasNextPage && (
        <button type="button" disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          {query.isFetchingNextPage ? 'Loading…' : 'Load more'}
        </button>
      )}
    </p>
  );
}
