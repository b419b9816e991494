import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { runQuery } from '../../api/runs.ts';
import type { Run } from '../../api/types.ts';
import { formatBytes, formatNumber, typeName } from '../../format/format.ts';
import { shellWord } from '../../format/shell-word.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Facts } from '../../parts/facts.tsx';
import { None, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, Count, Table } from '../../parts/table.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { CountList } from './count-list.tsx';
import { RequestList } from './request-list.tsx';
import { RunStatus } from './run-status.tsx';

const route = getRouteApi('/frame/uploads/runs/$runId');

export function RunScreen() {
  const { runId } = route.useParams();
  const may = usePermits();
  return (
    <Page
      title="Upload of files"
      back={<Link to="/uploads">Uploads</Link>}
      lead={<code className="id">{runId}</code>}
    >
      {may('data:read') ? (
        <>
          <RunParts runId={runId} />
          <Terminal
            calls={[
              { path: `/v1/runs/${encodeURIComponent(runId)}`, intake: `intake runs ${shellWord(runId)}` },
            ]}
          />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading uploads" />
      )}
    </Page>
  );
}

function RunParts({ runId }: { readonly runId: string }) {
  const run = useQuery(runQuery(runId));
  return (
    <Answer query={run} what="The upload" rows={8}>
      {(found) => (
        <>
          <section className="card">
            <h2 className="given-name">
              <bdi>{found.name}</bdi>
            </h2>
            {found.status === 'interrupted' && (
              <p className="notice">
                Nothing has been sent for 15 minutes. An upload with the command can be continued with{' '}
                <code>intake upload --resume</code>. If a page of this console was closed, upload the file
                again; of interactions, only the records that no request below has.
              </p>
            )}
            <RunFacts run={found} />
            <Counts run={found} />
          </section>
          <section className="card">
            <h2>Files</h2>
            <Table
              caption="Files"
              columns={fileColumns}
              rows={found.files}
              keyOf={({ file }) => String(file)}
            />
          </section>
          <Reasons run={found} />
          <section className="card">
            <h2>Requests</h2>
            <RequestList
              filter={{ run_id: runId }}
              empty={<p className="muted">No records have been stored.</p>}
            />
          </section>
        </>
      )}
    </Answer>
  );
}

function RunFacts({ run }: { readonly run: Run }) {
  return (
    <Facts
      facts={[
        ['Status', <RunStatus key="status" status={run.status} />],
        ['Begun', <Time key="begun" value={run.opened} />],
        ['Last activity', <Time key="activity" value={run.last_activity} />],
        ['Ended', <Time key="ended" value={run.ended} absent="not yet" />],
        ['Client', run.client_version ?? <None key="client" />],
        ['Key', <code key="key">{run.key_id}</code>],
      ]}
    />
  );
}

function Counts({ run: { counts, not_sent, not_kept } }: { readonly run: Run }) {
  const others = [
    ['Not sent', not_sent],
    ['Not kept', not_kept],
  ] as const;
  return (
    <>
      <CountList counts={counts} others={others} />
      {not_sent + not_kept > 0 && (
        <p className="hint">
          Records that were not sent or not kept are only in the file: correct them there, and upload it
          again.
        </p>
      )}
    </>
  );
}

const fileColumns: readonly Column<Run['files'][number]>[] = [
  {
    title: 'Name',
    cell: ({ name }) => (
      <span className="given-name">
        <bdi>{name}</bdi>
      </span>
    ),
  },
  { title: 'Type', cell: ({ type }) => typeName(type) },
  { title: 'Size', numeric: true, cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Requests', numeric: true, cell: ({ requests }) => <Count value={requests} /> },
  { title: 'Created', numeric: true, cell: ({ counts }) => <Count value={counts.created} /> },
  { title: 'Updated', numeric: true, cell: ({ counts }) => <Count value={counts.updated} /> },
  {
    title: 'Unchanged',
    numeric: true,
    cell: ({ counts }) => <Count value={counts.unchanged + counts.stale} />,
  },
  { title: 'Failed', numeric: true, cell: ({ counts }) => <Count value={counts.failed} bad /> },
  {
    title: 'Not sent',
    numeric: true,
    cell: ({ not_sent, not_kept }) => <Count value={not_sent + not_kept} bad />,
  },
];

/** Shows why records failed that are still rejections. They disappear when they are replayed or discarded. */
function Reasons({ run: { run_id, counts, reasons = [] } }: { readonly run: Run }) {
  if (counts.failed === 0) return null;
  return (
    <section className="card">
      <h2>Reasons</h2>
      {reasons.length === 0 ? (
        <p className="hint">None of the failed records is still an open rejection.</p>
      ) : (
        <>
          <Table
            caption="Rejections by reason"
            columns={[
              {
                title: 'Reason',
                cell: ({ type, code, field }) => (
                  <Link to="/rejections/group" search={{ type, code, field: field ?? undefined, run_id }}>
                    {typeName(type)}: <code>{field ?? 'record'}</code> {code}
                  </Link>
                ),
              },
              { title: 'Rejections', numeric: true, cell: ({ count }) => formatNumber(count) },
            ]}
            rows={reasons}
            keyOf={({ type, code, field }) => `${type} ${code} ${field}`}
          />
          <p>
            <Link to="/rejections" search={{ run_id }}>
              Correct, replay or discard what is still open
            </Link>
          </p>
        </>
      )}
    </section>
  );
}
