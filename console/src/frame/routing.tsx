import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { type Query, queryText } from '../api/request.ts';
import { Loading } from '../parts/answer.tsx';
import { Failure } from '../parts/failure.tsx';
import { Page } from '../parts/page.tsx';

/** Keeps only the parameters that a screen knows. All of them are strings, as they are in the URL. */
export function only<const Name extends string>(...names: readonly Name[]) {
  return (search: Record<string, unknown>): { [N in Name]?: string | undefined } => {
    const known = names.filter((name) => typeof search[name] === 'string' && search[name] !== '');
    return Object.fromEntries(known.map((name) => [name, search[name]])) as { [N in Name]?: string };
  };
}

export const routerOptions = {
  basepath: '/console',
  scrollRestoration: true,
  // Parameters stay strings when they are parsed and when they are written. By default, the router would parse a status, or
  // an id that looks like a number, as a number.
  parseSearch: (text: string) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search: Query) => queryText(search),
  defaultPreload: 'intent',
  defaultPendingComponent: () => <Loading what="Screen" rows={6} />,
  defaultErrorComponent: ({ error, reset }: ErrorComponentProps) => (
    <Failure error={error} what="The screen could not be shown" retry={reset} />
  ),
} as const;

export function Nowhere() {
  return (
    <Page title="No such screen">
      <p>
        The console has no screen at this address. <Link to="/">Go to the first screen</Link>.
      </p>
    </Page>
  );
}
