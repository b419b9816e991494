import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ApiError } from '../../api/request.ts';
import { runPagesQuery } from '../../api/runs.ts';
import type { RunSummary } from '../../api/types.ts';
import { formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty } from '../../parts/notices.tsx';
import { type Column, Count, Table } from '../../parts/table.tsx';
import { Line } from '../../parts/terminal.tsx';
import { RunStatus } from './run-status.tsx';

const columns: readonly Column<RunSummary>[] = [
  {
    title: 'Name',
    cell: ({ run_id, name }) => (
      <Link className="given-name" to="/uploads/runs/$runId" params={{ runId: run_id }}>
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  { title: 'Status', cell: ({ status }) => <RunStatus status={status} /> },
  { title: 'Begun', cell: ({ opened }) => <Time value={opened} /> },
  { title: 'Files', numeric: true, cell: ({ file_count }) => formatNumber(file_count) },
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

/** Lists the uploads of files. A service of an earlier version has none. */
export function Runs() {
  const runs = useInfiniteQuery(runPagesQuery({}));
  if (runs.error instanceof ApiError && runs.error.status === 404) return null;
  return (
    <section className="card">
      <h2>Uploads of files</h2>
      <Pages
        query={runs}
        what="The uploads of files"
        one="upload"
        rowsOf={(page) => page.runs}
        empty={
          <Empty title="No files have been uploaded yet.">
            <p>
              <Link to="/upload-file">Upload a file</Link>, here or from a terminal:
            </p>
            <Line text="intake upload shops.csv" />
          </Empty>
        }
      >
        {(rows) => (
          <Table caption="Uploads of files" columns={columns} rows={rows} keyOf={({ run_id }) => run_id} />
        )}
      </Pages>
    </section>
  );
}
