import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { accessPagesQuery, cancelAccess, collectedAddress } from '../../api/access-requests.ts';
import type { AccessRequest } from '../../api/types.ts';
import { formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Failure } from '../../parts/failure.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty, None } from '../../parts/notices.tsx';
import { Press } from '../../parts/press.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { CountsByName, totalOf } from './counts.tsx';

const states: Readonly<Record<AccessRequest['state'], readonly [Tone, string]>> = {
  pending: ['warn', 'Waiting'],
  running: ['warn', 'Collecting'],
  done: ['good', 'Collected'],
  expired: ['plain', 'File deleted'],
  cancelled: ['plain', 'Cancelled'],
};

const columns: readonly Column<AccessRequest>[] = [
  {
    title: 'Requested',
    cell: ({ requested, access_request_id }) => (
      <>
        <Time value={requested} />
        <div className="hint id">{access_request_id}</div>
      </>
    ),
  },
  { title: 'State', cell: (request) => <State {...request} /> },
  { title: 'Ids sent', numeric: true, cell: ({ people }) => formatNumber(people) },
  { title: 'Records', cell: (request) => <Records {...request} /> },
  { title: 'Kept until', cell: ({ expires }) => <Time value={expires} absent="not collected" /> },
  {
    title: 'File',
    cell: (request) => (isCollecting(request) ? <Cancel {...request} /> : <Download {...request} />),
  },
];

export function isCollecting({ state }: AccessRequest): boolean {
  return state === 'pending' || state === 'running';
}

function State({ state, records }: AccessRequest) {
  if (state === 'done' && totalOf(records) === 0) return <Badge tone="plain">Nothing found</Badge>;
  return <Badge tone={states[state][0]}>{states[state][1]}</Badge>;
}

function Records(request: AccessRequest) {
  // More records may still be found, so do not show "none" yet.
  if (isCollecting(request) && totalOf(request.records) === 0) return <None />;
  return <CountsByName counts={request.records} one="record" />;
}

/**
 * Shows the download link. The file is named after the request rather than the person, because file names end up in
 * histories and backups.
 */
export function Download({ access_request_id, state, records }: AccessRequest) {
  if (state !== 'done' || totalOf(records) === 0) return <None />;
  return (
    <a href={collectedAddress(access_request_id)} download={`access-request-${access_request_id}.ndjson`}>
      Download<span className="visually-hidden"> the file of access request {access_request_id}</span>
    </a>
  );
}

function Cancel({ access_request_id }: AccessRequest) {
  const client = useQueryClient();
  const cancelling = useMutation({
    mutationFn: () => cancelAccess(access_request_id),
    onSettled: () => client.invalidateQueries({ queryKey: accessPagesQuery.queryKey }),
  });
  return (
    <>
      <Press blocked={cancelling.isPending} onClick={() => cancelling.mutate()}>
        Cancel<span className="visually-hidden"> access request {access_request_id}</span>
      </Press>
      {cancelling.error && <Failure error={cancelling.error} what="Cancelling failed" />}
    </>
  );
}

const everyMs = 2_000;

/** Lists the access requests, and refreshes while records are being collected. */
export function AccessRequestList() {
  const list = useInfiniteQuery({
    ...accessPagesQuery,
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ access_requests }) => access_requests.some(isCollecting)) ? everyMs : false,
  });
  return (
    <section className="card">
      <h2>Requests</h2>
      <Pages
        query={list}
        what="The access requests"
        one="access request"
        rowsOf={({ access_requests }) => access_requests}
        empty={
          <Empty title="Nothing has been requested.">
            <p>When a person asks what is stored about them, request it with the form above.</p>
          </Empty>
        }
      >
        {(requests) => (
          <Table
            caption="Access requests"
            columns={columns}
            rows={requests}
            keyOf={({ access_request_id }) => access_request_id}
          />
        )}
      </Pages>
    </section>
  );
}
