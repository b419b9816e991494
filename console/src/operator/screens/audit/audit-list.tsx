import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { queryText } from '../../../api/request.ts';
import { countOf } from '../../../format/format.ts';
import { shellOptions } from '../../../format/shell-word.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { More } from '../../../parts/more.tsx';
import { Empty, None } from '../../../parts/notices.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import type { TerminalCall } from '../../../parts/terminal.tsx';
import { auditPagesQuery, auditPath } from '../../api/activity.ts';
import type { AuditEntry } from '../../api/types.ts';
import { OrganisationLink } from '../../parts/organisation-link.tsx';
import { describeDetails } from './describe-details.ts';

export function auditCall(organisation: string | undefined): TerminalCall {
  return {
    path: `${auditPath}${queryText({ organisation })}`,
    intake: `intake-server audit${shellOptions({ organisation })}`,
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

function Details({ details, request_id }: Pick<AuditEntry, 'details' | 'request_id'>) {
  return (
    <div className="long">
      {describeDetails(details)}
      {request_id !== null && <div className="hint id">request {request_id}</div>}
    </div>
  );
}

/** Lists the audit entries for one organisation or for all organisations, newest first. */
export function AuditList({ organisation }: { readonly organisation: string | undefined }) {
  const list = useInfiniteQuery(auditPagesQuery(organisation));
  return (
    <section className="card">
      <h2>Entries</h2>
      <Answer query={list} what="The audit log" rows={8}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries);
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
