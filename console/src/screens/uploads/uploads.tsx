import { getRouteApi, Link } from '@tanstack/react-router';
import { uploadTypes } from '../../../../client/src/generated/resources.ts';
import { uploadPermissions } from '../../api/permissions.ts';
import { queryText } from '../../api/request.ts';
import { shellOptions } from '../../format/shell-word.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import {
  Filters,
  isFiltered,
  SelectFilter,
  TextFilter,
  TimeFilter,
  typeChoices,
} from '../../parts/filters.tsx';
import { Empty, NothingFound, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { useChangeFilter } from '../../parts/search/use-change-filter.ts';
import { Terminal } from '../../parts/terminal.tsx';
import { outcomeChoices } from './receipt-columns.tsx';
import { RequestList } from './request-list.tsx';
import { Runs } from './runs.tsx';

const route = getRouteApi('/frame/uploads');

export function UploadsScreen() {
  const may = usePermits();
  const filter = route.useSearch();
  return (
    <Page
      title="Uploads"
      lead={
        <>
          Every request has a receipt: what arrived, what was stored and what failed.{' '}
          {uploadPermissions.some(may) && <Link to="/upload-file">Upload a file</Link>}
        </>
      }
    >
      {may('data:read') ? (
        <>
          {!isFiltered(filter) && <Runs />}
          <Requests />
          <Terminal
            calls={[
              { what: 'Uploads of files', path: '/v1/runs', intake: 'intake runs' },
              {
                what: 'Requests',
                path: `/v1/requests${queryText(filter)}`,
                intake: `intake requests${shellOptions(filter)}`,
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

function RequestFilters() {
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

function Requests() {
  const filter = route.useSearch();
  return (
    <section className="card">
      <h2>Requests</h2>
      <RequestFilters />
      <RequestList filter={filter} empty={<NoRequests filtered={isFiltered(filter)} />} />
    </section>
  );
}

function NoRequests({ filtered }: { readonly filtered: boolean }) {
  return (
    <NothingFound filtered={filtered} one="request" all={<Link to="/uploads">Show all uploads</Link>}>
      <Empty title="No requests.">
        <p>Receipts are kept for 30 days, unless the operator has set another time.</p>
      </Empty>
    </NothingFound>
  );
}
