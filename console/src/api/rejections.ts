import { queryOptions } from '@tanstack/react-query';
import { haveCounts } from '../../../client/src/uploading/send-cuts.ts';
import { pagesQuery } from './pages.ts';
import { ApiError, call } from './request.ts';
import type { RejectionGroup, RejectionPage, ReplayAnswer } from './types.ts';

/** The filters for selecting rejections. */
export interface RejectionFilter {
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly field?: string | undefined;
  readonly request_id?: string | undefined;
  readonly run_id?: string | undefined;
}

export function rejectionGroupsQuery(filter: RejectionFilter) {
  return queryOptions({
    queryKey: ['rejections', 'groups', filter],
    queryFn: ({ signal }) =>
      call<{ readonly rejections: readonly RejectionGroup[] }>('/v1/rejections/summary', {
        query: { ...filter },
        signal,
      }),
  });
}

export function rejectionPagesQuery(filter: RejectionFilter) {
  return pagesQuery<RejectionPage>('/v1/rejections', { ...filter, limit: 20 });
}

/** Reads a sample of the rejections, in which missing ids are counted. The sample is one large page. */
export function rejectionSampleQuery(filter: RejectionFilter) {
  return queryOptions({
    queryKey: ['rejections', 'sample', filter],
    queryFn: ({ signal }) =>
      call<RejectionPage>('/v1/rejections', { query: { ...filter, limit: 1_000 }, signal }),
  });
}

export interface ReplayProgress {
  readonly stored: number;
  readonly failed: number;
  /** The number of rejections that remain, or null if the service could not count them. */
  readonly remaining: number | null;
}

const triesMax = 5;

/**
 * Replays rejections until every matching one has been tried or `signal` is aborted. Each call processes up to 50,000 of
 * them.
 */
export async function replayRejections(
  filter: RejectionFilter,
  report: (progress: ReplayProgress) => void,
  signal: AbortSignal,
): Promise<ReplayProgress> {
  let progress: ReplayProgress = { stored: 0, failed: 0, remaining: null };
  let cursor: string | undefined;
  do {
    const query = { ...filter, cursor };
    const answer = await withPatience(() =>
      call<ReplayAnswer>('/v1/rejections/replay', {
        method: 'POST',
        query,
        isAnswer: ({ batches }) => haveCounts(batches as ReplayAnswer['batches']),
      }),
    );
    progress = addReplay(progress, answer);
    report(progress);
    cursor = answer.next_cursor ?? undefined;
  } while (cursor !== undefined && !signal.aborted);
  return progress;
}

export function addReplay(
  before: ReplayProgress,
  { batches, remaining }: Pick<ReplayAnswer, 'batches' | 'remaining'>,
): ReplayProgress {
  const failed = batches.reduce((sum, { data }) => sum + data.counts.failed, 0);
  const received = batches.reduce((sum, { data }) => sum + data.counts.received, 0);
  return { stored: before.stored + received - failed, failed: before.failed + failed, remaining };
}

/**
 * Discards rejections until no matching one is left. Each call ends after about 30 seconds and reports whether more are
 * left.
 */
export async function discardRejections(
  filter: RejectionFilter,
  report: (discarded: number) => void,
): Promise<number> {
  let total = 0;
  for (;;) {
    const { discarded, has_more } = await withPatience(() =>
      call<{ readonly discarded: number; readonly has_more: boolean }>('/v1/rejections', {
        method: 'DELETE',
        query: { ...filter },
        isAnswer: ({ discarded }) => Number.isSafeInteger(discarded),
      }),
    );
    total += discarded;
    report(total);
    if (!has_more) return total;
  }
}

/** Retries a request after the delay that the service requested. Replays and discards are both safe to repeat. */
async function withPatience<T>(request: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await request();
    } catch (error) {
      const waitS = error instanceof ApiError ? error.retryAfterS : null;
      if (waitS === null || tries === triesMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(waitS, 60) * 1_000));
    }
  }
}
