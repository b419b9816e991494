import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Outlet } from '@tanstack/react-router';
import { Answer } from '../../../parts/answer.tsx';
import { Page } from '../../../parts/page.tsx';
import { isNotFound, organisationQuery, slugPattern } from '../../api/organisations.ts';
import { Removed, StateNotice } from './lifetime/state-notice.tsx';
import { OneOrganisation } from './one-organisation.ts';

const route = getRouteApi('/frame/organisations/$slug');

const back = <Link to="/organisations">Organisations</Link>;

/** Shows the frame around one organisation's screens. */
export function OrganisationPage() {
  const { slug } = route.useParams();
  if (!slugPattern.test(slug))
    return (
      <Page title="No such organisation" back={back}>
        <p>The address does not have the slug of an organisation.</p>
      </Page>
    );
  return <KnownSlug key={slug} slug={slug} />;
}

function KnownSlug({ slug }: { readonly slug: string }) {
  const found = useQuery(organisationQuery(slug));
  const page = { title: found.data?.name ?? slug, back, lead: <code>{slug}</code> };
  if (isNotFound(found.error) && found.data?.deleted_at)
    return (
      <Page {...page}>
        <Removed />
      </Page>
    );
  return (
    <Page {...page}>
      <Tabs slug={slug} />
      <Answer query={found} what="The organisation" rows={6}>
        {(organisation) => (
          <OneOrganisation value={organisation}>
            <StateNotice organisation={organisation} />
            <Outlet />
          </OneOrganisation>
        )}
      </Answer>
    </Page>
  );
}

const tabs = [
  ['/organisations/$slug', 'Summary'],
  ['/organisations/$slug/keys', 'Keys and links'],
  ['/organisations/$slug/uploads', 'Uploads'],
  ['/organisations/$slug/rejections', 'Rejections'],
  ['/organisations/$slug/audit', 'Audit log'],
] as const;

function Tabs({ slug }: { readonly slug: string }) {
  return (
    <nav className="tabs" aria-label="Screens of the organisation">
      <ul>
        {tabs.map(([to, text]) => (
          <li key={to}>
            <Link
              to={to}
              params={{ slug }}
              activeOptions={{ exact: true, includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
            >
              {text}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
