import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type RejectionFilter, rejectionGroupsQuery } from '../../api/rejections.ts';
import { queryText } from '../../api/request.ts';
import type { RejectionGroup } from '../../api/types.ts';
import { formatNumber, inConsoleWords, typeName } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal, type TerminalCall } from '../../parts/terminal.tsx';
import { Discard } from './discard.tsx';
import { intakeOptions } from './intake-options.ts';
import { MissingIds } from './missing-ids.tsx';
import { RejectionList } from './rejection-list.tsx';
import { Replay } from './replay.tsx';

const route = getRouteApi('/frame/rejections/group');

export function RejectionGroupScreen() {
  const filter = route.useSearch();
  const may = usePermits();
  const title =
    `${typeName(filter.type ?? 'all types')}: ${filter.field ?? 'record'} ${filter.code ?? ''}`.trim();
  const back = (
    <Link to="/rejections" search={{ request_id: filter.request_id, run_id: filter.run_id }}>
      Rejections
    </Link>
  );
  return (
    <Page title={title} back={back}>
      {may('data:read') ? (
        <>
          <GroupSummary filter={filter} />
          {filter.code === 'reference_not_found' && filter.field !== undefined && (
            <MissingIds filter={filter} field={filter.field} />
          )}
          <RejectionList filter={filter} />
          <Terminal calls={callsFor(filter)} />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading rejections" />
      )}
    </Page>
  );
}

function callsFor(filter: RejectionFilter): readonly TerminalCall[] {
  const query = queryText({ ...filter });
  const options = intakeOptions(filter);
  return [
    { what: 'List', path: `/v1/rejections${query}`, intake: `intake rejections list${options}` },
    {
      what: 'Replay',
      path: `/v1/rejections/replay${query}`,
      method: 'POST',
      intake: `intake rejections replay${options}`,
    },
    {
      what: 'Discard',
      path: `/v1/rejections${query}`,
      method: 'DELETE',
      intake: `intake rejections discard${options}`,
    },
  ];
}

function GroupSummary({ filter }: { readonly filter: RejectionFilter }) {
  const groups = useQuery(rejectionGroupsQuery(filter));
  // A rejection can have several errors, so the response may also contain groups other than this one.
  const isThis = ({ code, field }: RejectionGroup) =>
    code === filter.code && field === (filter.field ?? null);
  const group = groups.data?.rejections.find(isThis);
  return (
    <section className="card">
      <h2>Group</h2>
      <Answer query={groups} what="The group" rows={4}>
        {() => (group === undefined ? <NothingLeft filter={filter} /> : <GroupFacts group={group} />)}
      </Answer>
      <div className="actions">
        <Replay filter={filter} what="this group" offered={group !== undefined} />
        <Discard filter={filter} count={group?.count ?? 0} />
      </div>
    </section>
  );
}

function GroupFacts({ group }: { readonly group: RejectionGroup }) {
  return (
    <>
      {group.example && (
        <p>
          <code>{group.field ?? 'record'}</code> {inConsoleWords(group.example.message)}
        </p>
      )}
      <Facts
        facts={[
          ['Rejections', formatNumber(group.count)],
          ['First seen', <Time key="first" value={group.first_seen} />],
          ['Last seen', <Time key="last" value={group.last_seen} />],
        ]}
      />
      <p className="hint">
        A replay checks these records again and stores those that are valid now. Discarding deletes them
        permanently.
      </p>
    </>
  );
}

function NothingLeft({ filter }: { readonly filter: RejectionFilter }) {
  return (
    <Empty title="This group has no open rejections.">
      <p>
        <Link to="/rejections" search={{ request_id: filter.request_id, run_id: filter.run_id }}>
          See the other rejections
        </Link>
      </p>
    </Empty>
  );
}
