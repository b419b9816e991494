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
import { type Column, Count, Table } from '../../../parts/table.tsx';
import { Line, Terminal } from '../../../parts/terminal.tsx';
import {
  isQuota,
  limitNames,
  organisationPagesQuery,
  organisationsPath,
  quotaNames,
} from '../../api/organisations.ts';
import type { ListedOrganisation } from '../../api/types.ts';
import { describeLimit } from '../../parts/limits.ts';
import { OrganisationLink } from '../../parts/organisation-link.tsx';
import { OrganisationState } from '../../parts/organisation-state.tsx';
import { QuotaBar } from '../../parts/quota-bar.tsx';
import { SearchFilter } from '../../parts/search-filter.tsx';
import { Changing } from '../../signed-in.tsx';
import { CreateOrganisation } from './create-organisation.tsx';

const route = getRouteApi('/frame/organisations');

/** The maximum length of a search term that the service accepts. */
const searchLengthMax = 63;

const columns: readonly Column<ListedOrganisation>[] = [
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
  {
    title: 'Records',
    numeric: true,
    cell: ({ records }) => <Count value={records} />,
  },
  { title: 'Quotas', cell: (organisation) => <QuotaUse organisation={organisation} /> },
  { title: 'Last upload', cell: ({ last_upload_at }) => <Time value={last_upload_at} /> },
  { title: 'Own limits', cell: (organisation) => <OwnLimits organisation={organisation} /> },
];

/** Hidden where rows are stacked, like a count of zero. */
const none = <span className="muted count-zero">none</span>;

interface OfOrganisation {
  readonly organisation: ListedOrganisation;
}

function QuotaUse({ organisation }: OfOrganisation) {
  const own = quotaNames.filter((name) => organisation[name] !== null);
  if (own.length === 0) return none;
  return (
    <div className="quotas">
      {own.map((name) => (
        <QuotaBar key={name} organisation={organisation} name={name} />
      ))}
    </div>
  );
}

function OwnLimits({ organisation }: OfOrganisation) {
  const own = limitNames.filter((name) => organisation[name] !== null && !isQuota(name));
  if (own.length === 0) return none;
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
