import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { receiptPagesQuery } from '../../api/records.ts';
import type { Query } from '../../api/request.ts';
import type { ReceiptSummary } from '../../api/types.ts';
import { formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { Pages } from '../../parts/more.tsx';
import { None } from '../../parts/notices.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { receiptColumns } from './receipt-columns.tsx';

const columns: readonly Column<ReceiptSummary>[] = [
  {
    title: 'Received',
    cell: ({ request_id, received }) => (
      <Link to="/uploads/$requestId" params={{ requestId: request_id }}>
        <Time value={received} />
      </Link>
    ),
  },
  ...receiptColumns,
];

const ofRun: Column<ReceiptSummary> = {
  title: 'First record',
  numeric: true,
  cell: ({ first_record }) => (first_record === null ? <None /> : formatNumber(first_record)),
};

/** Lists receipts, of all uploads or of one. */
export function RequestList({ filter, empty }: { readonly filter: Query; readonly empty: ReactNode }) {
  const requests = useInfiniteQuery(receiptPagesQuery(filter));
  return (
    <Pages query={requests} what="The requests" one="request" rowsOf={(page) => page.requests} empty={empty}>
      {(rows) => (
        <Table
          caption="Requests"
          columns={filter.run_id === undefined ? columns : columns.toSpliced(2, 0, ofRun)}
          rows={rows}
          keyOf={({ request_id }) => request_id}
        />
      )}
    </Pages>
  );
}
