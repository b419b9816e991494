import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { queryText } from '../../../api/request.ts';
import { countOf } from '../../../format/format.ts';
import { shellOptions } from '../../../format/shell-word.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { isFiltered } from '../../../parts/filters.tsx';
import { More } from '../../../parts/more.tsx';
import { Empty, None } from '../../../parts/notices.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import type { TerminalCall } from '../../../parts/terminal.tsx';
import { type AuditFilter, auditPagesQuery, auditPath } from '../../api/activity.ts';
import type { AuditEntry } from '../../api/types.ts';
import { OrganisationLink } from '../../parts/organisation-link.tsx';
import { describeDetails } from './describe-details.ts';

export function auditCall({ organisation, actor, action, since, until }: AuditFilter): TerminalCall {
  const filter = { organisation, actor, action, since, until };
  return {
    path: `${auditPath}${queryText(filter)}`,
    intake: `intake-server audit${shellOptions(filter)}`,
  };
}

const none = <None />;

function columnsFor(organisation: string | undefined): readonly Column<AuditEntry>[] {
  const ofOrganisation: Column<AuditEntry> = {
    title: 'Organisation',
    cell: ({ organisation: slug }) =>
      slug === null ? none : <OrganisationLink slug={slug}>{slug}</OrganisationLink>,
  };
  return [
    {
      title: 'Time',
      cell: ({ at, actor }) => (
        <>
          <Time value={at} />
          <div className="hint">by {actor}</div>
        </>
      ),
    },
    { title: 'Action', cell: ({ act }) => <code>{act}</code> },
    ...(organisation === undefined ? [ofOrganisation] : []),
    { title: 'Key', cell: ({ key_id }) => (key_id === null ? none : <code>{key_id}</code>) },
    { title: 'Details', cell: (entry) => <Details {...entry} /> },
  ];
}

function Details({
  details,
  request_id,
  imported_at,
}: Pick<AuditEntry, 'details' | 'request_id' | 'imported_at'>) {
  return (
    <div className="long">
      {describeDetails(details)}
      {request_id !== null && <div className="hint id">request {request_id}</div>}
      {imported_at !== null && <div className="hint">imported after a restore</div>}
    </div>
  );
}

/** Lists the audit entries that match the filter, newest first. */
export function AuditList({ filter }: { readonly filter: AuditFilter }) {
  const { organisation, ...others } = filter;
  const list = useInfiniteQuery(auditPagesQuery(filter));
  return (
    <section className="card audit">
      <h2>Entries</h2>
      <Answer query={list} what="The audit log" rows={8}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries);
          if (entries.length === 0 && isFiltered(others))
            return <Empty title="No entry matches these filters." />;
          if (entries.length === 0)
            return (
              <Empty title="Nothing has been changed yet.">
                <p>
                  Every change to an organisation, a key or a token appears here.{' '}
                  <Link to="/organisations">Go to the organisations</Link>.
                </p>
              </Empty>
            );
          return (
            <>
              <Table
                caption="Audit log"
                columns={columnsFor(organisation)}
                rows={entries}
                keyOf={({ audit_id }) => audit_id}
              />
              <More query={list} shown={countOf(entries.length, 'entry', 'entries')} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}
