import type { ReactNode } from 'react';
import { Failure } from './failure.tsx';

interface Asked<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
  /** Whether only the next page of a paginated list failed. */
  readonly isFetchNextPageError?: boolean;
  readonly fetchNextPage?: () => unknown;
}

interface AnswerProps<T> {
  readonly query: Asked<T>;
  /** The subject of the error message, as in "The uploads could not be read". */
  readonly what: string;
  readonly rows?: number;
  readonly children: (data: T) => ReactNode;
}

/**
 * Shows the part of a screen that depends on a query. A failed query is shown as a failure, never as an empty result, and
 * earlier data stays visible below it.
 */
export function Answer<T>({ query, what, rows = 3, children }: AnswerProps<T>) {
  const { data, error } = query;
  const retry = () => (query.isFetchNextPageError ? query.fetchNextPage?.() : query.refetch());
  return (
    <>
      {error !== null && <Failure error={error} what={`${what} could not be read`} retry={retry} />}
      {data !== undefined && children(data)}
      {data === undefined && error === null && <Loading what={what} rows={rows} />}
    </>
  );
}

export function Loading({ what, rows = 3 }: { readonly what: string; readonly rows?: number }) {
  const lines = Array.from({ length: rows }, (_, row) => `line ${row}`);
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">{what}: loading</span>
      {lines.map((line) => (
        <span key={line} className="loading-line" />
      ))}
    </div>
  );
}
