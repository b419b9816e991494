import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { OrganisationFrame } from './frame/organisation-frame.tsx';
import { Nowhere, only, routerOptions } from './frame/routing.tsx';

const root = createRootRoute({ component: Outlet });
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: OrganisationFrame });
const getParentRoute = () => frame;

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: only('next'),
  component: lazyRouteComponent(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
});

const overview = createRoute({
  getParentRoute,
  path: '/',
  component: lazyRouteComponent(() => import('./screens/overview/overview.tsx'), 'OverviewScreen'),
});

const uploads = createRoute({
  getParentRoute,
  path: '/uploads',
  validateSearch: only('type', 'status', 'idempotency_key', 'from', 'to'),
  component: lazyRouteComponent(() => import('./screens/uploads/uploads.tsx'), 'UploadsScreen'),
});

const upload = createRoute({
  getParentRoute,
  path: '/uploads/$requestId',
  component: lazyRouteComponent(() => import('./screens/uploads/upload.tsx'), 'UploadScreen'),
});

const run = createRoute({
  getParentRoute,
  path: '/uploads/runs/$runId',
  component: lazyRouteComponent(() => import('./screens/uploads/run.tsx'), 'RunScreen'),
});

const uploadFile = createRoute({
  getParentRoute,
  path: '/upload-file',
  component: lazyRouteComponent(() => import('./screens/upload-file/upload-file.tsx'), 'UploadFileScreen'),
});

const rejections = createRoute({
  getParentRoute,
  path: '/rejections',
  validateSearch: only('type', 'request_id', 'run_id'),
  component: lazyRouteComponent(() => import('./screens/rejections/rejections.tsx'), 'RejectionsScreen'),
});

const rejectionGroup = createRoute({
  getParentRoute,
  path: '/rejections/group',
  validateSearch: only('type', 'code', 'field', 'request_id', 'run_id'),
  component: lazyRouteComponent(() => import('./screens/rejections/group.tsx'), 'RejectionGroupScreen'),
});

const types = createRoute({
  getParentRoute,
  path: '/data',
  component: lazyRouteComponent(() => import('./screens/data/types.tsx'), 'TypesScreen'),
});

const records = createRoute({
  getParentRoute,
  path: '/data/$type',
  validateSearch: only('shop_id', 'category_id', 'tag_id', 'keyword_id', 'stored_since', 'include_deleted'),
  component: lazyRouteComponent(() => import('./screens/data/records.tsx'), 'RecordsScreen'),
});

const record = createRoute({
  getParentRoute,
  path: '/data/$type/$id',
  component: lazyRouteComponent(() => import('./screens/data/record.tsx'), 'RecordScreen'),
});

/** The person's id is in the history state rather than in the URL. */
const person = createRoute({
  getParentRoute,
  path: '/data/customers/person',
  component: lazyRouteComponent(() => import('./screens/data/record.tsx'), 'PersonScreen'),
});

const interactions = createRoute({
  getParentRoute,
  path: '/interactions',
  validateSearch: only('interaction_type', 'item_type', 'item_id', 'source', 'from', 'to', 'live'),
  component: lazyRouteComponent(
    () => import('./screens/interactions/interactions.tsx'),
    'InteractionsScreen',
  ),
});

const accessRequests = createRoute({
  getParentRoute,
  path: '/access-requests',
  component: lazyRouteComponent(
    () => import('./screens/privacy/access-requests.tsx'),
    'AccessRequestsScreen',
  ),
});

const privacy = createRoute({
  getParentRoute,
  path: '/privacy',
  component: lazyRouteComponent(() => import('./screens/privacy/privacy.tsx'), 'PrivacyScreen'),
});

const key = createRoute({
  getParentRoute,
  path: '/key',
  component: lazyRouteComponent(() => import('./screens/key/key.tsx'), 'KeyScreen'),
});

const nowhere = createRoute({ getParentRoute, path: '$', component: Nowhere });

const screens = [
  overview,
  uploads,
  upload,
  run,
  uploadFile,
  rejections,
  rejectionGroup,
  types,
  records,
  record,
  person,
  interactions,
  accessRequests,
  privacy,
  key,
  nowhere,
] as const;

export const router = createRouter({
  routeTree: root.addChildren([signIn, frame.addChildren([...screens])]),
  ...routerOptions,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface HistoryState {
    /** People's ids are passed in the history state, because a URL would end up in logs and in the browser's history. */
    person?: { readonly customer_id?: string; readonly student_id?: string; readonly user_id?: string };
  }
}
