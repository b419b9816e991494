import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { queryText } from './api/request.ts';
import { Frame } from './frame/frame.tsx';
import { Loading } from './parts/answer.tsx';
import { Failure } from './parts/failure.tsx';
import { Page } from './parts/page.tsx';

/** Keeps the parameters that a screen knows. All of them are text, as in the address. */
function only<const Name extends string>(...names: readonly Name[]) {
  return (search: Record<string, unknown>): { [N in Name]?: string | undefined } => {
    const known = names.filter((name) => typeof search[name] === 'string' && search[name] !== '');
    return Object.fromEntries(known.map((name) => [name, search[name]])) as { [N in Name]?: string };
  };
}

const root = createRootRoute({ component: Outlet });
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: Frame });
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
  validateSearch: only('type', 'status', 'from', 'to'),
  component: lazyRouteComponent(() => import('./screens/uploads/uploads.tsx'), 'UploadsScreen'),
});

const upload = createRoute({
  getParentRoute,
  path: '/uploads/$requestId',
  component: lazyRouteComponent(() => import('./screens/uploads/upload.tsx'), 'UploadScreen'),
});

const uploadFile = createRoute({
  getParentRoute,
  path: '/upload-file',
  component: lazyRouteComponent(() => import('./screens/upload-file/upload-file.tsx'), 'UploadFileScreen'),
});

const rejections = createRoute({
  getParentRoute,
  path: '/rejections',
  validateSearch: only('type', 'request_id'),
  component: lazyRouteComponent(() => import('./screens/rejections/rejections.tsx'), 'RejectionsScreen'),
});

const rejectionGroup = createRoute({
  getParentRoute,
  path: '/rejections/group',
  validateSearch: only('type', 'code', 'field', 'request_id'),
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

/** The id of the person is in the state of the history, not in the address. */
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

function Nowhere() {
  return (
    <Page title="No such screen">
      <p>
        The console has no screen at this address. <Link to="/">Go to the overview</Link>.
      </p>
    </Page>
  );
}

const screens = [
  overview,
  uploads,
  upload,
  uploadFile,
  rejections,
  rejectionGroup,
  types,
  records,
  record,
  person,
  interactions,
  privacy,
  key,
  nowhere,
] as const;

export const router = createRouter({
  routeTree: root.addChildren([signIn, frame.addChildren([...screens])]),
  basepath: '/console',
  scrollRestoration: true,
  // Plain text on both sides: by default a status would be read as a number and an id that looks like one, too.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => queryText(search),
  defaultPreload: 'intent',
  defaultPendingComponent: () => <Loading what="Screen" rows={6} />,
  defaultErrorComponent: ({ error, reset }) => (
    <Failure error={error} what="The screen could not be shown" retry={reset} />
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface HistoryState {
    /** Ids of people travel here: an address would end up in logs and in the browser's history. */
    person?: { readonly customer_id?: string; readonly student_id?: string; readonly user_id?: string };
  }
}
