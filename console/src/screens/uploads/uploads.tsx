import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { uploadTypes } from '../../../../client/src/generated/resources.ts';
import { receiptPagesQuery } from '../../api/records.ts';
import { queryText } from '../../api/request.ts';
import type { ReceiptSummary } from '../../api/types.ts';
import { countOf, formatNumber, typeName } from '../../format/format.ts';
import { shellOptions } from '../../format/shell-word.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Outcome } from '../../parts/badge.tsx';
import { Filters, SelectFilter, TimeFilter } from '../../parts/filters.tsx';
import { More } from '../../parts/more.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';

const route = getRouteApi('/frame/uploads');

const columns: readonly Column<ReceiptSummary>[] = [
  {
    title: 'Received',
    cell: ({ request_id, received }) => (
      <Link to="/uploads/$requestId" params={{ requestId: request_id }}>
        <Time value={received} />
      </Link>
    ),
  },
  { title: 'Type', cell: (receipt) => <WhatItWas {...receipt} /> },
  { title: 'Outcome', cell: ({ status, complete }) => <Outcome status={status} complete={complete} /> },
  { title: 'Records', numeric: true, cell: ({ counts }) => formatNumber(counts.received) },
  { title: 'Created', numeric: true, cell: ({ counts }) => formatNumber(counts.created) },
  { title: 'Updated', numeric: true, cell: ({ counts }) => formatNumber(counts.updated) },
  { title: 'Unchanged', numeric: true, cell: ({ counts }) => formatNumber(counts.unchanged + counts.stale) },
  { title: 'Failed', numeric: true, cell: ({ counts }) => formatNumber(counts.failed) },
];

function WhatItWas({ operation, type }: Pick<ReceiptSummary, 'operation' | 'type'>) {
  const name = type === null ? 'Several types' : typeName(type);
  return operation === 'replay' ? `${name} (replay)` : name;
}

export function UploadsScreen() {
  const may = usePermits();
  const filter = route.useSearch();
  return (
    <Page title="Uploads" lead="Every upload has a receipt: what arrived, what was stored and what failed.">
      {may('data:read') ? (
        <>
          <UploadFilters />
          <UploadList />
          <Terminal
            calls={[
              { path: `/v1/requests${queryText(filter)}`, intake: `intake requests${shellOptions(filter)}` },
            ]}
          />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading receipts" />
      )}
    </Page>
  );
}

function UploadFilters() {
  const { type, status, from, to } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (changed: Partial<Record<'type' | 'status' | 'from' | 'to', string | undefined>>) =>
    navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  return (
    <Filters>
      <SelectFilter
        label="Type"
        value={type}
        onChange={(value) => change({ type: value })}
        choices={uploadTypes.map((value) => ({ value, text: typeName(value) }))}
      />
      <SelectFilter
        label="Outcome"
        value={status}
        onChange={(value) => change({ status: value })}
        choices={[
          { value: '200', text: 'Complete' },
          { value: '207', text: 'Partial' },
          { value: '400', text: 'Failed' },
        ]}
      />
      <TimeFilter label="Received from" value={from} onChange={(value) => change({ from: value })} />
      <TimeFilter label="Received before" value={to} onChange={(value) => change({ to: value })} />
    </Filters>
  );
}

function UploadList() {
  const filter = route.useSearch();
  const uploads = useInfiniteQuery(receiptPagesQuery(filter));
  return (
    <section className="card">
      <h2 className="visually-hidden">Receipts</h2>
      <Answer query={uploads} what="The uploads" rows={8}>
        {({ pages }) => {
          const rows = pages.flatMap(({ requests }) => requests);
          if (rows.length === 0) return <NoUploads filtered={Object.keys(filter).length > 0} />;
          return (
            <>
              <Table caption="Uploads" columns={columns} rows={rows} keyOf={({ request_id }) => request_id} />
              <More query={uploads} shown={countOf(rows.length, 'upload')} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}

function NoUploads({ filtered }: { readonly filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No upload matches these filters.">
        <p>
          <Link to="/uploads">Show all uploads</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No receipts. They are kept for a time that the operator sets, 30 days by default.">
      <p>
        <Link to="/upload-file">Upload a file</Link> to get one, here or from a terminal:
      </p>
      <Line text="intake upload shops.csv" />
    </Empty>
  );
}
