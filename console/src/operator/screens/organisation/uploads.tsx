import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { queryText } from '../../../api/request.ts';
import type { ReceiptSummary } from '../../../api/types.ts';
import { countOf, formatBytes } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Filters, SelectFilter } from '../../../parts/filters.tsx';
import { More } from '../../../parts/more.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import { outcomeChoices, receiptColumns } from '../../../screens/uploads/receipt-columns.tsx';
import { organisationPath, uploadPagesQuery } from '../../api/organisations.ts';
import { useOrganisation } from './one-organisation.ts';

const route = getRouteApi('/frame/organisations/$slug/uploads');

const columns: readonly Column<ReceiptSummary>[] = [
  {
    title: 'Received',
    cell: ({ received, request_id }) => (
      <>
        <Time value={received} />
        <div className="hint id">{request_id}</div>
      </>
    ),
  },
  ...receiptColumns,
  { title: 'Size', numeric: true, cell: ({ body_bytes }) => formatBytes(body_bytes) },
  { title: 'Key', cell: ({ key_id }) => <code>{key_id}</code> },
];

/** Shows the organisation's receipts, without its records. */
export function UploadsScreen() {
  const { slug } = useOrganisation();
  const { status } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <>
      <Filters>
        <SelectFilter
          label="Outcome"
          value={status}
          onChange={(value) => navigate({ search: { status: value }, replace: true })}
          choices={outcomeChoices}
        />
      </Filters>
      <UploadList slug={slug} status={status} />
      <Terminal calls={[{ path: `${organisationPath(slug)}/requests${queryText({ status })}` }]} />
    </>
  );
}

interface UploadListProps {
  readonly slug: string;
  readonly status: string | undefined;
}

function UploadList({ slug, status }: UploadListProps) {
  const uploads = useInfiniteQuery(uploadPagesQuery(slug, { status }));
  return (
    <section className="card">
      <h2>Uploads, newest first</h2>
      <Answer query={uploads} what="The uploads" rows={8}>
        {({ pages }) => {
          const rows = pages.flatMap(({ requests }) => requests);
          if (rows.length === 0) return <NoUploads slug={slug} filtered={status !== undefined} />;
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

function NoUploads({ slug, filtered }: { readonly slug: string; readonly filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No upload has this outcome.">
        <p>
          <Link to="/organisations/$slug/uploads" params={{ slug }}>
            Show all uploads
          </Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No receipts: nothing was uploaded in the time for which they are kept, 30 days by default.">
      <p>
        The organisation uploads with a key:{' '}
        <Link to="/organisations/$slug/keys" params={{ slug }}>
          see its keys
        </Link>
        .
      </p>
    </Empty>
  );
}
