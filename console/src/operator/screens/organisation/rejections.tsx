import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { RejectionGroup } from '../../../api/types.ts';
import { formatNumber, typeName } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import { organisationPath, rejectionGroupsQuery } from '../../api/organisations.ts';
import { useOrganisation } from './one-organisation.ts';

const columns: readonly Column<RejectionGroup>[] = [
  {
    title: 'Reason',
    cell: ({ type, code, field }) => (
      <>
        {typeName(type)}: <code>{field ?? 'record'}</code> {code}
      </>
    ),
  },
  { title: 'Rejections', numeric: true, cell: ({ count }) => formatNumber(count) },
  { title: 'First seen', cell: ({ first_seen }) => <Time value={first_seen} /> },
  { title: 'Last seen', cell: ({ last_seen }) => <Time value={last_seen} /> },
];

/** Shows the failures and their reasons. It does not show the records, because they belong to the organisation. */
export function RejectionsScreen() {
  const { slug } = useOrganisation();
  const groups = useQuery(rejectionGroupsQuery(slug));
  return (
    <>
      <section className="card">
        <h2>Open rejections by reason</h2>
        <Answer query={groups} what="The rejections" rows={6}>
          {({ rejections }) =>
            rejections.length === 0 ? (
              <Empty title="No open rejections: everything that was uploaded is stored." />
            ) : (
              <>
                <Table
                  caption="Rejections by reason"
                  columns={columns}
                  rows={rejections}
                  keyOf={({ type, code, field }) => `${type} ${code} ${field}`}
                />
                <p className="hint">
                  A record with several invalid fields counts once for each. To see the records, open the
                  organisation’s console with{' '}
                  <Link to="/organisations/$slug/keys" params={{ slug }}>
                    a console link
                  </Link>
                  .
                </p>
              </>
            )
          }
        </Answer>
      </section>
      <Terminal calls={[{ path: `${organisationPath(slug)}/rejections/summary` }]} />
    </>
  );
}
