import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { queryText } from '../../../api/request.ts';
import { countOf } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Filters } from '../../../parts/filters.tsx';
import { More } from '../../../parts/more.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { Page } from '../../../parts/page.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import { Line, Terminal } from '../../../parts/terminal.tsx';
import { limitNames, organisationPagesQuery, organisationsPath } from '../../api/organisations.ts';
import type { Organisation } from '../../api/types.ts';
import { describeLimit } from '../../parts/limits.ts';
import { OrganisationLink } from '../../parts/organisation-link.tsx';
import { OrganisationState } from '../../parts/organisation-state.tsx';
import { SearchFilter } from '../../parts/search-filter.tsx';
import { Changing } from '../../signed-in.tsx';
import { CreateOrganisation } from './create-organisation.tsx';

const route = getRouteApi('/frame/organisations');

/** The maximum length of a search term that the service accepts. */
const searchLengthMax = 63;

const columns: readonly Column<Organisation>[] = [
  {
    title: 'Organisation',
    cell: ({ slug, name }) => (
      <>
        <OrganisationLink slug={slug}>{name}</OrganisationLink>
        <div className="hint">{slug}</div>
      </>
    ),
  },
  { title: 'State', cell: (organisation) => <OrganisationState organisation={organisation} /> },
  { title: 'Own limits', cell: (organisation) => <OwnLimits organisation={organisation} /> },
  { title: 'Created', cell: ({ created_at }) => <Time value={created_at} /> },
];

function OwnLimits({ organisation }: { readonly organisation: Organisation }) {
  const own = limitNames.filter((name) => organisation[name] !== null);
  if (own.length === 0) return <span className="muted">none</span>;
  return own.map((name) => describeLimit(name, organisation[name])).join(', ');
}

export function OrganisationsScreen() {
  const { search } = route.useSearch();
  const navigate = route.useNavigate();
  const [creating, setCreating] = useState(false);
  return (
    <Page title="Organisations" lead="Who may send to the service, and how much.">
      <Filters>
        <SearchFilter
          label="Search by slug or name"
          value={search}
          lengthMax={searchLengthMax}
          onChange={(value) => navigate({ search: { search: value }, replace: true })}
        />
      </Filters>
      <Changing what="Creating an organisation">
        <p>
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            Create an organisation
          </button>
        </p>
      </Changing>
      <OrganisationList />
      <Terminal
        calls={[
          {
            path: `${organisationsPath}${queryText({ search })}`,
            intake: 'intake-server organisations list',
          },
        ]}
      />
      {creating && <CreateOrganisation onClose={() => setCreating(false)} />}
    </Page>
  );
}

function OrganisationList() {
  const { search } = route.useSearch();
  const list = useInfiniteQuery({
    ...organisationPagesQuery(search),
    // Keep the list visible while the user types.
    placeholderData: keepPreviousData,
  });
  return (
    <section className="card" aria-busy={list.isPlaceholderData}>
      <h2 className="visually-hidden">List</h2>
      <Answer query={list} what="The organisations" rows={8}>
        {({ pages }) => {
          const rows = pages.flatMap(({ organisations }) => organisations);
          if (rows.length === 0) return <NoOrganisations search={search} />;
          return (
            <>
              <Table caption="Organisations" columns={columns} rows={rows} keyOf={({ slug }) => slug} />
              <More query={list} shown={countOf(rows.length, 'organisation')} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}

function NoOrganisations({ search }: { readonly search: string | undefined }) {
  if (search !== undefined)
    return (
      <Empty title={`No organisation has “${search}” in its slug or name.`}>
        <p>
          <Link to="/organisations">Show all organisations</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="There are no organisations yet.">
      <p>Create the first one with the button above or from a terminal, then issue a key for it:</p>
      <Line text="intake-server organisations create acme" />
    </Empty>
  );
}
