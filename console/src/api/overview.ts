import { queryOptions } from '@tanstack/react-query';
import { call } from './request.ts';
import type { DayOfUploads, Overview } from './types.ts';

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => call<Overview>('/v1/data', { signal }),
});

/** Returns the days with the oldest first, as the chart needs them. */
export function dailyUploadsQuery(days: number) {
  return queryOptions({
    queryKey: ['daily-uploads', days],
    queryFn: async ({ signal }) => {
      const query = { days };
      const answer = await call<{ readonly days: readonly DayOfUploads[] }>('/v1/requests/daily', {
        query,
        signal,
      });
      return answer.days.toReversed();
    },
  });
}
