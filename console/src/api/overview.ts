import { queryOptions } from '@tanstack/react-query';
import { type DailyUploads, groupByDay } from './daily-uploads.ts';
import { call } from './request.ts';
import type { Overview, ReceiptPage, ReceiptSummary } from './types.ts';

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => call<Overview>('/v1/data', { signal }),
});

export function dailyUploadsQuery(days: number) {
  return queryOptions({
    queryKey: ['daily-uploads', days],
    queryFn: ({ signal }) => readDailyUploads(days, signal),
    staleTime: 60_000,
  });
}

const receiptsMax = 1_000;
const receiptsPerPage = 100;
const dayMs = 86_400_000;

/** Counts receipts here; an organisation with more of them than `receiptsMax` gets `complete: false`. */
async function readDailyUploads(days: number, signal: AbortSignal): Promise<DailyUploads> {
  const now = Date.now();
  const from = new Date(now - (now % dayMs) - (days - 1) * dayMs).toISOString();
  const receipts: ReceiptSummary[] = [];
  let cursor: string | undefined;
  do {
    const query = { from, limit: receiptsPerPage, cursor };
    const page: ReceiptPage = await call<ReceiptPage>('/v1/requests', { query, signal });
    receipts.push(...page.requests);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && receipts.length < receiptsMax);
  return { days: groupByDay(receipts, from, days), complete: cursor === undefined };
}
