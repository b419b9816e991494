import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from './pages.ts';
import { call, type Query } from './request.ts';
import type { Run, RunPage } from './types.ts';

const path = '/v1/runs';
const refreshMs = 5_000;

/** The beginning of the keys of all queries of lists of runs. */
export const runsKey = ['pages', path] as const;

export function runPagesQuery(query: Query) {
  return pagesQuery<RunPage>(path, { ...query, limit: 10 });
}

/** Reads a run again while it is running. */
export function runQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId],
    queryFn: ({ signal }) => call<Run>(`${path}/${encodeURIComponent(runId)}`, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? refreshMs : false),
  });
}
