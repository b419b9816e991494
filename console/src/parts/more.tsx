import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { countOf } from '../format/format.ts';
import { Answer } from './answer.tsx';

interface PagesProps<Page, Row> {
  readonly query: UseInfiniteQueryResult<InfiniteData<Page>>;
  /** The subject of the error message, as in "The uploads could not be read". */
  readonly what: string;
  /** The singular name of a row, such as "upload". */
  readonly one: string;
  readonly rowsOf: (page: Page) => readonly Row[];
  /** The content that is shown if the list is empty. */
  readonly empty: ReactNode;
  readonly children: (rows: readonly Row[]) => ReactNode;
}

/** Shows a list that is read page by page. In a slow search, a page may have few rows or none. */
export function Pages<Page, Row>({ query, what, one, rowsOf, empty, children }: PagesProps<Page, Row>) {
  return (
    <Answer query={query} what={what} rows={8}>
      {({ pages }) => {
        const rows = pages.flatMap(rowsOf);
        if (rows.length === 0 && !query.hasNextPage) return empty;
        return (
          <>
            {rows.length > 0 ? children(rows) : <p>None found yet. Load more continues the search.</p>}
            <More query={query} shown={countOf(rows.length, one)} />
          </>
        );
      }}
    </Answer>
  );
}

interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Shows a button that reads a list's next page. */
export function More({ query, shown }: { readonly query: Paged; readonly shown: string }) {
  return (
    <p className="more">
      <span className="muted" role="status">
        {shown}
        {query.hasNextPage ? ' so far' : ' in total'}
      </span>
      {query.hasNextPage && (
        <button type="button" disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          {query.isFetchingNextPage ? 'Loading…' : 'Load more'}
        </button>
      )}
    </p>
  );
}
