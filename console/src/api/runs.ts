import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { pagesQuery } from './pages.ts';
import { call, type Query } from './request.ts';
import type { Run, RunPage } from './types.ts';

const path = '/v1/runs';
const runKey = 'run';
const refreshMs = 5_000;

export function runPagesQuery(query: Query) {
  return pagesQuery<RunPage>(path, { ...query, limit: 10 });
}

/** Reads a run again while it is running. */
export function runQuery(runId: string) {
  return queryOptions({
    queryKey: [runKey, runId],
    queryFn: ({ signal }) => call<Run>(`${path}/${encodeURIComponent(runId)}`, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? refreshMs : false),
  });
}

/** Reads all runs again, because one has ended. */
export function forgetRuns(client: QueryClient): Promise<void> {
  return client.invalidateQueries({
    predicate: ({ queryKey: [first, second] }) => first === runKey || second === path,
  });
}
