import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { Nowhere, only, routerOptions } from '../frame/routing.tsx';
import { OperatorFrame } from './frame.tsx';

const root = createRootRoute({ component: Outlet });
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: OperatorFrame });
const getParentRoute = () => frame;

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: only('next'),
  component: lazyRouteComponent(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
});

const now = createRoute({
  getParentRoute,
  path: '/',
  validateSearch: only('by', 'minutes'),
  component: lazyRouteComponent(() => import('./screens/now/now.tsx'), 'NowScreen'),
});

const organisations = createRoute({
  getParentRoute,
  path: '/organisations',
  validateSearch: only('search'),
  component: lazyRouteComponent(
    () => import('./screens/organisations/organisations.tsx'),
    'OrganisationsScreen',
  ),
});

/** All of an organisation's screens share this route. */
const organisation = createRoute({
  getParentRoute,
  path: '/organisations/$slug',
  component: lazyRouteComponent(() => import('./screens/organisation/organisation.tsx'), 'OrganisationPage'),
});

const organisationSummary = createRoute({
  getParentRoute: () => organisation,
  path: '/',
  component: lazyRouteComponent(() => import('./screens/organisation/summary.tsx'), 'SummaryScreen'),
});

const organisationKeys = createRoute({
  getParentRoute: () => organisation,
  path: '/keys',
  component: lazyRouteComponent(() => import('./screens/organisation/own-keys.tsx'), 'OwnKeysScreen'),
});

const organisationUploads = createRoute({
  getParentRoute: () => organisation,
  path: '/uploads',
  validateSearch: only('status'),
  component: lazyRouteComponent(() => import('./screens/organisation/uploads.tsx'), 'UploadsScreen'),
});

const organisationRejections = createRoute({
  getParentRoute: () => organisation,
  path: '/rejections',
  component: lazyRouteComponent(() => import('./screens/organisation/rejections.tsx'), 'RejectionsScreen'),
});

const organisationAudit = createRoute({
  getParentRoute: () => organisation,
  path: '/audit',
  component: lazyRouteComponent(() => import('./screens/organisation/own-audit.tsx'), 'OwnAuditScreen'),
});

const keys = createRoute({
  getParentRoute,
  path: '/keys',
  validateSearch: only('organisation', 'expires_before', 'unused'),
  component: lazyRouteComponent(() => import('./screens/keys/keys.tsx'), 'KeysScreen'),
});

const audit = createRoute({
  getParentRoute,
  path: '/audit',
  validateSearch: only('organisation', 'actor', 'action', 'since', 'until'),
  component: lazyRouteComponent(() => import('./screens/audit/audit.tsx'), 'AuditScreen'),
});

const processes = createRoute({
  getParentRoute,
  path: '/service',
  component: lazyRouteComponent(() => import('./screens/processes/processes.tsx'), 'ProcessesScreen'),
});

const nowhere = createRoute({ getParentRoute, path: '$', component: Nowhere });

const oneOrganisation = organisation.addChildren([
  organisationSummary,
  organisationKeys,
  organisationUploads,
  organisationRejections,
  organisationAudit,
]);

const screens = [now, organisations, oneOrganisation, keys, audit, processes, nowhere] as const;

export const router = createRouter({
  routeTree: root.addChildren([signIn, frame.addChildren([...screens])]),
  ...routerOptions,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
