import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { ApiError, call } from './request.ts';

export const sessionKey = ['session'] as const;

/** Null if nobody is signed in. What a session says depends on who signs in: an organisation or the operator. */
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

/** A key that was typed, the token of a link that the operator made, or an admin token. */
export type Credential = { readonly key: string } | { readonly link: string } | { readonly token: string };

export function signIn(credential: Credential): Promise<unknown> {
  return call('/session', { method: 'POST', body: credential });
}

export function signOut(): Promise<void> {
  return call<void>('/session', { method: 'DELETE' });
}

/** Forgets everything that was read. The session goes first, so that the screens that show the rest are gone by then. */
export function forgetSession(client: QueryClient): void {
  client.setQueryData(sessionKey, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
