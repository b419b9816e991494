import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { ApiError, call } from './request.ts';

export const sessionKey = ['session'] as const;

/** Returns the session, or null if nobody is signed in. Organisations and the operator have different session types. */
export function sessionQuery<S>() {
  return queryOptions({
    queryKey: sessionKey,
    queryFn: ({ signal }) => readSession<S>(signal),
    staleTime: 60_000,
  });
}

async function readSession<S>(signal: AbortSignal): Promise<S | null> {
  try {
    return await call<S>('/session', { signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** An API key that the user typed, the token from an operator's link, or an admin token. */
export type Credential = { readonly key: string } | { readonly link: string } | { readonly token: string };

/** Signs in. The service's own message about a wrong key is for programs, and mentions the HTTP header. */
export async function signIn(credential: Credential): Promise<unknown> {
  try {
    return await call('/session', { method: 'POST', body: credential });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthorized') throw error;
    const message = 'This key does not work. Check it, or ask your operator for a new one.';
    throw new ApiError(error.status, error.code, message, error);
  }
}

export function signOut(): Promise<void> {
  return call<void>('/session', { method: 'DELETE' });
}

/** Clears the cache. The session is removed first, so that the screens that use the other data are already gone. */
export function forgetSession(client: QueryClient): void {
  client.setQueryData(sessionKey, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
