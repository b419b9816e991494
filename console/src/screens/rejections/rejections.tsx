import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { uploadTypes } from '../../../../client/src/generated/resources.ts';
import { type RejectionFilter, rejectionGroupsQuery } from '../../api/rejections.ts';
import { queryText } from '../../api/request.ts';
import type { RejectionGroup } from '../../api/types.ts';
import { formatNumber, inConsoleWords, typeName } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Filters, isFiltered, SelectFilter, TextFilter, typeChoices } from '../../parts/filters.tsx';
import { Empty, NothingFound, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { useChangeFilter } from '../../parts/search/use-change-filter.ts';
import { type Column, Table } from '../../parts/table.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';
import { intakeOptions } from './intake-options.ts';
import { Replay } from './replay.tsx';

const route = getRouteApi('/frame/rejections');

function columnsFor({ request_id, run_id }: RejectionFilter): readonly Column<RejectionGroup>[] {
  return [
    {
      title: 'Reason',
      cell: ({ type, code, field, example }) => (
        <>
          <Link to="/rejections/group" search={{ type, code, field: field ?? undefined, request_id, run_id }}>
            {typeName(type)}: <code>{field ?? 'record'}</code> {code}
          </Link>
          {example && <div className="hint">{inConsoleWords(example.message)}</div>}
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
  const { type, request_id, run_id } = route.useSearch();
  const change = useChangeFilter();
  return (
    <Filters>
      <SelectFilter
        label="Type"
        value={type}
        onChange={(value) => change('type', value)}
        choices={typeChoices(uploadTypes)}
      />
      <TextFilter label="Request id" value={request_id} onChange={(value) => change('request_id', value)} />
      <TextFilter label="Upload (run id)" value={run_id} onChange={(value) => change('run_id', value)} />
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
            <NoRejections filtered={isFiltered(filter)} />
          ) : (
            <>
              <Table
                caption="Rejections by reason"
                columns={columnsFor(filter)}
                rows={rejections}
                keyOf={({ type, code, field }) => `${type} ${code} ${field}`}
              />
              <p className="hint">
                A record with several invalid fields counts once for each. A replay checks the records again
                and stores those that are valid now.
              </p>
            </>
          )
        }
      </Answer>
      <Replay filter={filter} what="all of these" offered={(groups.data?.rejections.length ?? 0) > 0} />
    </section>
  );
}

function NoRejections({ filtered }: { readonly filtered: boolean }) {
  return (
    <NothingFound filtered={filtered} one="rejection" all={<Link to="/rejections">Show all rejections</Link>}>
      <Empty title="No open rejections: everything that was uploaded is stored.">
        <p>
          A file can be checked before it is uploaded, <Link to="/upload-file">here</Link> or from a terminal:
        </p>
        <Line text="intake upload exports/ --dry-run" />
      </Empty>
    </NothingFound>
  );
}
