import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { dailyUploadsQuery, overviewQuery } from '../../api/overview.ts';
import type { Overview } from '../../api/types.ts';
import { formatNumber, typeName } from '../../format/format.ts';
import { isResourceType } from '../../format/personal.ts';
import { Time } from '../../format/time.tsx';
import { QuotaNotice } from '../../frame/quota-notice.tsx';
import { usePermits, useSession } from '../../frame/signed-in.tsx';
import { Answer, Loading } from '../../parts/answer.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, Count, Table } from '../../parts/table.tsx';
import { Line, Terminal, type TerminalCall } from '../../parts/terminal.tsx';
import { DailyTable } from './daily-table.tsx';

// The chart library is larger than the rest of this screen, so it is loaded while the screen fetches its numbers.
const chart = import('./daily-chart.tsx');
const DailyChart = lazy(() => chart);

const daysShown = 14;

const calls: readonly TerminalCall[] = [
  { path: '/v1/data', intake: 'intake status' },
  { what: 'Uploads by day', path: `/v1/requests/daily?days=${daysShown}` },
];

type TypeRow = Overview['types'][number];

const columns: readonly Column<TypeRow>[] = [
  { title: 'Type', cell: ({ type }) => <TypeLink type={type} /> },
  { title: 'Records', numeric: true, cell: ({ records }) => formatNumber(records) },
  { title: 'Last upload', cell: ({ last_upload }) => <Time value={last_upload} /> },
  { title: 'Open rejections', numeric: true, cell: (row) => <OpenRejections {...row} /> },
];

function TypeLink({ type }: { readonly type: string }) {
  if (!isResourceType(type)) return <Link to="/interactions">{typeName(type)}</Link>;
  return (
    <Link to="/data/$type" params={{ type }}>
      {typeName(type)}
    </Link>
  );
}

function OpenRejections({ type, open_rejections }: TypeRow) {
  if (open_rejections === 0) return <Count value={0} />;
  return (
    <Link to="/rejections" search={{ type }}>
      {formatNumber(open_rejections)}
      <span className="visually-hidden">
        {' '}
        open {open_rejections === 1 ? 'rejection' : 'rejections'} of {type}
      </span>
    </Link>
  );
}

export function OverviewScreen() {
  const { organisation } = useSession();
  const may = usePermits();
  return (
    <Page title="Overview" lead={`What ${organisation.name} has uploaded.`}>
      {may('data:read') ? (
        <>
          <QuotaNotice />
          <Types />
          <Days />
          <Terminal calls={calls} />
        </>
      ) : (
        <NotPermitted permission="data:read" what="The overview" />
      )}
    </Page>
  );
}

function Types() {
  const overview = useQuery(overviewQuery);
  return (
    <section className="card">
      <h2>Records</h2>
      <Answer query={overview} what="The overview" rows={5}>
        {({ types }) =>
          types.length === 0 ? (
            <Empty title="Nothing has been uploaded yet.">
              <p>
                <Link to="/upload-file">Upload a file</Link> here, or a folder of CSV or JSON files from a
                terminal, which sends them in the order of their references:
              </p>
              <Line text="intake upload exports/" />
            </Empty>
          ) : (
            <Table caption="Records by type" columns={columns} rows={types} keyOf={({ type }) => type} />
          )
        }
      </Answer>
    </section>
  );
}

function Days() {
  const daily = useQuery(dailyUploadsQuery(daysShown));
  return (
    <section className="card">
      <h2>Uploads in the last {daysShown} days (UTC)</h2>
      <Answer query={daily} what="The uploads" rows={5}>
        {(days) =>
          days.every(({ uploads }) => uploads.complete + uploads.partial + uploads.failed === 0) ? (
            <p className="muted">None.</p>
          ) : (
            <>
              <Suspense fallback={<Loading what="Chart" rows={5} />}>
                <DailyChart days={days} />
              </Suspense>
              <details>
                <summary>Show as a table</summary>
                <DailyTable days={days} />
              </details>
            </>
          )
        }
      </Answer>
    </section>
  );
}
