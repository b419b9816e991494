import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { resources, resourceTypes } from '../../../../client/src/generated/resources.ts';
import { overviewQuery } from '../../api/overview.ts';
import { formatNumber, typeName } from '../../format/format.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { Terminal } from '../../parts/terminal.tsx';

export function TypesScreen() {
  const may = usePermits();
  return (
    <Page title="Data" lead="The records that are stored, by type.">
      {may('data:read') ? <TypeList /> : <NotPermitted permission="data:read" what="Reading records" />}
    </Page>
  );
}

function TypeList() {
  const overview = useQuery(overviewQuery);
  return (
    <>
      <section className="card">
        <h2 className="visually-hidden">Types</h2>
        <Answer query={overview} what="The overview" rows={8}>
          {({ types }) => {
            const counts = new Map<string, number>(types.map(({ type, records }) => [type, records]));
            return (
              <Table
                caption="Types of records"
                columns={[
                  {
                    title: 'Type',
                    cell: (type) => (
                      <Link to="/data/$type" params={{ type }}>
                        {typeName(type)}
                      </Link>
                    ),
                  },
                  { title: 'Records', numeric: true, cell: (type) => formatNumber(counts.get(type) ?? 0) },
                  {
                    title: 'Must exist first',
                    cell: (type) =>
                      Object.values(resources[type].references).map(typeName).join(', ') || (
                        <span className="muted">nothing</span>
                      ),
                  },
                ]}
                rows={resourceTypes}
                keyOf={(type) => type}
              />
            );
          }}
        </Answer>
      </section>
      <Terminal
        calls={[
          { what: 'Count the records', path: '/v1/data', intake: 'intake status' },
          {
            what: 'Copy the tables of the lake to a folder, for DuckDB, pandas or Polars, if the operator has switched it on',
            path: '/v1/lake',
            intake: 'intake pull ./lake',
          },
        ]}
      />
    </>
  );
}
