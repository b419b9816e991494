import { createContext, useContext } from 'react';
import { permits } from '../api/permissions.ts';
import type { Session } from '../api/types.ts';

/** Provides the session to all screens inside the frame. */
export const SignedIn = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SignedIn);
  if (session === null) throw new Error('This screen is shown only to someone who is signed in.');
  return session;
}

/** Returns a function that checks whether the session's key has a permission. */
export function usePermits(): (needed: string) => boolean {
  const { permissions } = useSession().key;
  return (needed) => permits(permissions, needed);
}
