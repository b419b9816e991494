import type { DayOfUploads } from '../../api/types.ts';
import { formatDay, formatNumber } from '../../format/format.ts';
import { type Column, Table } from '../../parts/table.tsx';

const columns: readonly Column<DayOfUploads>[] = [
  { title: 'Day (UTC)', cell: ({ day }) => <time dateTime={day}>{formatDay(day)}</time> },
  { title: 'Complete', numeric: true, cell: ({ uploads }) => formatNumber(uploads.complete) },
  { title: 'Partial', numeric: true, cell: ({ uploads }) => formatNumber(uploads.partial) },
  { title: 'Failed', numeric: true, cell: ({ uploads }) => formatNumber(uploads.failed) },
  { title: 'Records', numeric: true, cell: ({ records }) => formatNumber(records.received) },
  { title: 'Records failed', numeric: true, cell: ({ records }) => formatNumber(records.failed) },
];

/** Shows the chart's numbers, newest day first. */
export function DailyTable({ days }: { readonly days: readonly DayOfUploads[] }) {
  return (
    <Table
      caption="Uploads by day"
      columns={columns}
      rows={days.toReversed()}
      keyOf={({ day }) => day}
      wide
    />
  );
}
