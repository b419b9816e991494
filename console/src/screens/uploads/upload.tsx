import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { receiptQuery } from '../../api/records.ts';
import type { BatchAnswer, Receipt } from '../../api/types.ts';
import { formatBytes, formatDuration, formatNumber, typeName } from '../../format/format.ts';
import { shellWord } from '../../format/shell-word.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Outcome } from '../../parts/badge.tsx';
import { Facts } from '../../parts/facts.tsx';
import { None, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, Count, Table } from '../../parts/table.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { CountList, counted, countNames } from './count-list.tsx';
import { UploadErrors } from './upload-errors.tsx';

const route = getRouteApi('/frame/uploads/$requestId');

const batchColumns: readonly Column<BatchAnswer>[] = [
  { title: 'Batch', numeric: true, cell: ({ batch }) => formatNumber(batch) },
  { title: 'Type', cell: ({ data }) => typeName(data.type) },
  { title: 'Outcome', cell: ({ status }) => <Outcome status={status} /> },
  ...counted.map((name) => ({
    title: countNames[name],
    numeric: true,
    cell: ({ data }: BatchAnswer) => <Count value={data.counts[name]} bad={name === 'failed'} />,
  })),
];

export function UploadScreen() {
  const { requestId } = route.useParams();
  const may = usePermits();
  return (
    <Page
      title="Request"
      back={<Link to="/uploads">Uploads</Link>}
      lead={<code className="id">{requestId}</code>}
    >
      {may('data:read') ? (
        <>
          <UploadReceipt requestId={requestId} />
          <Terminal
            calls={[
              {
                path: `/v1/requests/${encodeURIComponent(requestId)}`,
                intake: `intake requests ${shellWord(requestId)}`,
              },
            ]}
          />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading receipts" />
      )}
    </Page>
  );
}

function UploadReceipt({ requestId }: { readonly requestId: string }) {
  const receipt = useQuery(receiptQuery(requestId));
  return (
    <Answer query={receipt} what="The receipt" rows={8}>
      {(found) => (
        <>
          <section className="card">
            <h2>Receipt</h2>
            <ReceiptFacts receipt={found} />
            <CountList counts={found.counts} />
          </section>
          <UploadErrors receipt={found} />
          <section className="card">
            <h2>Batches</h2>
            <p className="hint">Up to 1,000 records each, stored in a transaction of its own.</p>
            <Table
              caption="Batches"
              columns={batchColumns}
              rows={found.batches}
              keyOf={({ data }) => data.batch_id}
            />
            <Warnings batches={found.batches} />
          </section>
        </>
      )}
    </Answer>
  );
}

function ReceiptFacts({ receipt }: { readonly receipt: Receipt }) {
  return (
    <Facts
      facts={[
        ['Outcome', <Outcome key="outcome" status={receipt.status} complete={receipt.complete} />],
        ['Type', receipt.type === null ? 'Several types' : typeName(receipt.type)],
        ['Operation', receipt.operation === 'replay' ? 'Replay of rejections' : 'Upload'],
        ['Received', <Time key="received" value={receipt.received} />],
        ['Took', formatDuration(receipt.duration_ms)],
        ['Size', formatBytes(receipt.body_bytes)],
        ['Key', <code key="key">{receipt.key_id}</code>],
        ['Idempotency key', receipt.idempotency_key ?? <None key="none" />],
        ['Upload of files', <OfRun key="run" runId={receipt.run_id} />],
        ...(receipt.complete
          ? []
          : [['Missing batches', receipt.missing_batches.map(formatNumber).join(', ')] as const]),
      ]}
    />
  );
}

function OfRun({ runId }: { readonly runId: string | null }) {
  if (!runId) return <None />;
  return (
    <Link to="/uploads/runs/$runId" params={{ runId }}>
      <code className="id">{runId}</code>
    </Link>
  );
}

function Warnings({ batches }: { readonly batches: readonly BatchAnswer[] }) {
  const warnings = batches.flatMap(({ batch, data }) =>
    data.warnings.map((warning) => ({ batch, ...warning })),
  );
  if (warnings.length === 0) return null;
  return (
    <>
      <h3>Warnings</h3>
      <ul>
        {warnings.map(({ batch, code, field, message, count }) => (
          <li key={`${batch} ${code} ${field}`}>
            Batch {formatNumber(batch)}: {field !== null && <code>{field}</code>} {message} (
            {formatNumber(count)})
          </li>
        ))}
      </ul>
    </>
  );
}
