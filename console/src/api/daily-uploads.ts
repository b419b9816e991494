import type { ReceiptSummary } from './types.ts';

export interface DayOfUploads {
  /** A day in UTC, such as 2026-11-16. */
  readonly day: string;
  readonly uploads: { readonly complete: number; readonly partial: number; readonly failed: number };
  readonly records: { readonly received: number; readonly failed: number };
}

export interface DailyUploads {
  readonly days: readonly DayOfUploads[];
  /** False if there were more uploads than were counted; then the oldest are missing. */
  readonly complete: boolean;
}

const dayMs = 86_400_000;

/** One entry for each day from the day of `from` on, also for days without uploads. */
export function groupByDay(
  receipts: readonly Pick<ReceiptSummary, 'received' | 'status' | 'counts'>[],
  from: string,
  days: number,
): DayOfUploads[] {
  const byDay = Map.groupBy(receipts, ({ received }) => new Date(received).toISOString().slice(0, 10));
  return Array.from({ length: days }, (_, at) => {
    const day = new Date(Date.parse(from) + at * dayMs).toISOString().slice(0, 10);
    const ofDay = byDay.get(day) ?? [];
    const withStatus = (status: number) => ofDay.filter((receipt) => receipt.status === status).length;
    const sum = (count: 'received' | 'failed') =>
      ofDay.reduce((total, { counts }) => total + counts[count], 0);
    return {
      day,
      uploads: { complete: withStatus(200), partial: withStatus(207), failed: withStatus(400) },
      records: { received: sum('received'), failed: sum('failed') },
    };
  });
}
