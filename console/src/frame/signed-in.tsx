import { createContext, useContext } from 'react';
import { permits } from '../api/permissions.ts';
import type { Session } from '../api/types.ts';

/** The session, for every screen inside the frame. */
export const SignedIn = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SignedIn);
  if (session === null) throw new Error('This screen is shown only to someone who is signed in.');
  return session;
}

/** Whether the key of the session may do something. */
export function usePermits(): (needed: string) => boolean {
  const { permissions } = useSession().key;
  return (needed) => permits(permissions, needed);
}
