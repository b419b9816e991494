import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { ApiError, call, sendAs, sessionPath } from './request.ts';

export const sessionKey = ['session'] as const;

/** Organisations sign in with a key, and operators with an admin token. */
export type AnySession =
  | { readonly key: { readonly key_id: string } }
  | { readonly token: { readonly name: string } };

function nameOf(session: AnySession): string {
  return 'key' in session ? session.key.key_id : session.token.name;
}

/** Returns the session, or null if nobody is signed in. */
export function sessionQuery<S extends AnySession>() {
  return queryOptions({
    queryKey: sessionKey,
    queryFn: ({ client, signal }) => readSession<S>(client.getQueryData<S | null>(sessionKey), signal),
    staleTime: 60_000,
  });
}

async function readSession<S extends AnySession>(
  known: S | null | undefined,
  signal: AbortSignal,
): Promise<S | null> {
  try {
    const session = await call<S>(sessionPath, { signal });
    if (known && nameOf(known) !== nameOf(session)) throw new ApiError(409, 'other_session', otherSession);
    sendAs(nameOf(session));
    return session;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** The service gives the same message to the other requests of such a page. */
const otherSession =
  'This browser has signed in with another key or token since this page was opened; reload the page.';

/** An API key that the user typed, the token from an operator's link, or an admin token. */
export type Credential =
  | { readonly key: string }
  | { readonly link: string; readonly replace?: boolean }
  | { readonly token: string };

/** Signs in. The service's own message about a wrong key is for programs, and mentions the HTTP header. */
export async function signIn(credential: Credential): Promise<unknown> {
  try {
    const session = await call<AnySession>(sessionPath, { method: 'POST', body: credential });
    sendAs(nameOf(session));
    return session;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthorized') throw error;
    const message = 'This key does not work. Check it, or ask your operator for a new one.';
    throw new ApiError(error.status, error.code, message, error);
  }
}

export function signOut(): Promise<void> {
  return call<void>(sessionPath, { method: 'DELETE' });
}

/** Clears the cache. The session is removed first, so that the screens that use the other data are already gone. */
export function forgetSession(client: QueryClient): void {
  client.setQueryData(sessionKey, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
