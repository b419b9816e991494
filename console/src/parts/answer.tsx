import type { ReactNode } from 'react';
import { Failure } from './failure.tsx';

interface Asked<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
  /** Of a list that is read in pages: the next page alone failed. */
  readonly isFetchNextPageError?: boolean;
  readonly fetchNextPage?: () => unknown;
}

interface AnswerProps<T> {
  readonly query: Asked<T>;
  /** What is read, as in "The uploads could not be read". */
  readonly what: string;
  readonly rows?: number;
  readonly children: (data: T) => ReactNode;
}

/**
 * One part of a screen that waits for an answer. A failed query shows as failed, never as an empty result; what was
 * read before stays visible below the failure.
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
