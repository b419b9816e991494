import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Outlet } from '@tanstack/react-router';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Page } from '../../../parts/page.tsx';
import { organisationQuery, slugPattern } from '../../api/organisations.ts';
import { OneOrganisation } from './one-organisation.ts';

const route = getRouteApi('/frame/organisations/$slug');

const back = <Link to="/organisations">Organisations</Link>;

/** What surrounds every screen of one organisation. */
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
  return (
    <Page title={found.data?.name ?? slug} back={back} lead={<code>{slug}</code>}>
      <Tabs slug={slug} />
      <Answer query={found} what="The organisation" rows={6}>
        {(organisation) => (
          <OneOrganisation value={organisation}>
            {organisation.suspended_at !== null && (
              <div className="notice notice-bad">
                <p className="notice-title">This organisation is suspended.</p>
                <p>
                  Since <Time value={organisation.suspended_at} /> all of its keys are answered with 403. Its
                  data stays.
                </p>
              </div>
            )}
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
