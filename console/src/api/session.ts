import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { ApiError, call } from './request.ts';
import type { Session } from './types.ts';

export const sessionKey = ['session'] as const;

/** Null if nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: sessionKey,
  queryFn: ({ signal }) => readSession(signal),
  staleTime: 60_000,
});

async function readSession(signal: AbortSignal): Promise<Session | null> {
  try {
    return await call<Session>('/session', { signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** Either a key that was typed, or the token of a link that the operator made. */
export type Credential = { readonly key: string } | { readonly link: string };

export function signIn(credential: Credential): Promise<Session> {
  return call<Session>('/session', { method: 'POST', body: credential });
}

export function signOut(): Promise<void> {
  return call<void>('/session', { method: 'DELETE' });
}

/** Forgets everything that was read. The session goes first, so that the screens that show the rest are gone by then. */
export function forgetSession(client: QueryClient): void {
  client.setQueryData(sessionKey, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
}
