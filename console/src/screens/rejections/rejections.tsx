import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { uploadTypes } from '../../../../client/src/generated/resources.ts';
import { rejectionGroupsQuery } from '../../api/rejections.ts';
import { queryText } from '../../api/request.ts';
import type { RejectionGroup } from '../../api/types.ts';
import { formatNumber, typeName } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Filters, SelectFilter, TextFilter } from '../../parts/filters.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';
import { intakeOptions } from './intake-options.ts';
import { Replay } from './replay.tsx';

const route = getRouteApi('/frame/rejections');

function columnsFor(requestId: string | undefined): readonly Column<RejectionGroup>[] {
  return [
    {
      title: 'Reason',
      cell: ({ type, code, field, example }) => (
        <>
          <Link
            to="/rejections/group"
            search={{ type, code, field: field ?? undefined, request_id: requestId }}
          >
            {typeName(type)}: <code>{field ?? 'record'}</code> {code}
          </Link>
          {example && <div className="hint">{example.message}</div>}
        </>
      ),
    },
    { title: 'Rejections', numeric: true, cell: ({ count }) => formatNumber(count) },
    { title: 'First seen', cell: ({ first_seen }) => <Time value={first_seen} /> },
    { title: 'Last seen', cell: ({ last_seen }) => <Time value={last_seen} /> },
  ];
}

export function RejectionsScreen() {
  const may = usePermits();
  const filter = route.useSearch();
  return (
    <Page title="Rejections" lead="Records that failed and are kept, by type, field and reason.">
      {may('data:read') ? (
        <>
          <RejectionFilters />
          <Groups />
          <Terminal
            calls={[
              {
                path: `/v1/rejections/summary${queryText(filter)}`,
                intake: `intake rejections summary${intakeOptions(filter)}`,
              },
            ]}
          />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading rejections" />
      )}
    </Page>
  );
}

function RejectionFilters() {
  const { type, request_id } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (changed: Partial<Record<'type' | 'request_id', string | undefined>>) =>
    navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  return (
    <Filters>
      <SelectFilter
        label="Type"
        value={type}
        onChange={(value) => change({ type: value })}
        choices={uploadTypes.map((value) => ({ value, text: typeName(value) }))}
      />
      <TextFilter
        label="Upload (request id)"
        value={request_id}
        onChange={(value) => change({ request_id: value })}
      />
    </Filters>
  );
}

function Groups() {
  const filter = route.useSearch();
  const groups = useQuery(rejectionGroupsQuery(filter));
  return (
    <section className="card">
      <h2>Reasons</h2>
      <Answer query={groups} what="The rejections" rows={6}>
        {({ rejections }) =>
          rejections.length === 0 ? (
            <NoRejections filtered={Object.keys(filter).length > 0} />
          ) : (
            <>
              <Table
                caption="Rejections by reason"
                columns={columnsFor(filter.request_id)}
                rows={rejections}
                keyOf={({ type, code, field }) => `${type} ${code} ${field}`}
              />
              <p className="hint">A record with several wrong fields counts for each of them.</p>
            </>
          )
        }
      </Answer>
      <Replay filter={filter} what="all of these" offered={(groups.data?.rejections.length ?? 0) > 0} />
    </section>
  );
}

function NoRejections({ filtered }: { readonly filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No rejection matches these filters.">
        <p>
          <Link to="/rejections">Show all rejections</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No open rejections: everything that was uploaded is stored.">
      <p>To check files before they are uploaded:</p>
      <Line text="intake upload exports/ --dry-run" />
    </Empty>
  );
}
