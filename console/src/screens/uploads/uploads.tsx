import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { uploadTypes } from '../../../../client/src/generated/resources.ts';
import { uploadPermissions } from '../../api/permissions.ts';
import { receiptPagesQuery } from '../../api/records.ts';
import { queryText } from '../../api/request.ts';
import type { ReceiptSummary } from '../../api/types.ts';
import { shellOptions } from '../../format/shell-word.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import {
  Filters,
  isFiltered,
  SelectFilter,
  TextFilter,
  TimeFilter,
  typeChoices,
} from '../../parts/filters.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty, NothingFound, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { useChangeFilter } from '../../parts/search/use-change-filter.ts';
import { type Column, Table } from '../../parts/table.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';
import { outcomeChoices, receiptColumns } from './receipt-columns.tsx';

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
  ...receiptColumns,
];

export function UploadsScreen() {
  const may = usePermits();
  const filter = route.useSearch();
  return (
    <Page
      title="Uploads"
      lead={
        <>
          Every upload has a receipt: what arrived, what was stored and what failed.{' '}
          {uploadPermissions.some(may) && <Link to="/upload-file">Upload a file</Link>}
        </>
      }
    >
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
  const filter = route.useSearch();
  const { type, status, idempotency_key, from, to } = filter;
  const change = useChangeFilter();
  return (
    <Filters folded={!isFiltered(filter)}>
      <SelectFilter
        label="Type"
        value={type}
        onChange={(value) => change('type', value)}
        choices={typeChoices(uploadTypes)}
      />
      <SelectFilter
        label="Outcome"
        value={status}
        onChange={(value) => change('status', value)}
        choices={outcomeChoices}
      />
      <TextFilter
        label="Idempotency key"
        value={idempotency_key}
        onChange={(value) => change('idempotency_key', value)}
      />
      <TimeFilter label="Received from" value={from} onChange={(value) => change('from', value)} />
      <TimeFilter label="Received before" value={to} onChange={(value) => change('to', value)} />
    </Filters>
  );
}

function UploadList() {
  const filter = route.useSearch();
  const uploads = useInfiniteQuery(receiptPagesQuery(filter));
  return (
    <section className="card">
      <h2 className="visually-hidden">Receipts</h2>
      <Pages
        query={uploads}
        what="The uploads"
        one="upload"
        rowsOf={({ requests }) => requests}
        empty={<NoUploads filtered={isFiltered(filter)} />}
      >
        {(rows) => (
          <Table caption="Uploads" columns={columns} rows={rows} keyOf={({ request_id }) => request_id} />
        )}
      </Pages>
    </section>
  );
}

function NoUploads({ filtered }: { readonly filtered: boolean }) {
  return (
    <NothingFound filtered={filtered} one="upload" all={<Link to="/uploads">Show all uploads</Link>}>
      <Empty title="No uploads.">
        <p>
          Receipts are kept for 30 days, unless the operator has set another time.{' '}
          <Link to="/upload-file">Upload a file</Link>, here or from a terminal:
        </p>
        <Line text="intake upload shops.csv" />
      </Empty>
    </NothingFound>
  );
}
