import { createContext, type ReactNode, useContext } from 'react';
import type { Session } from './api/types.ts';

/** Provides the session to all screens inside the frame. */
export const SignedIn = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SignedIn);
  if (session === null) throw new Error('This screen is shown only to someone who is signed in.');
  return session;
}

/** Returns whether the session's token may change anything. */
export function useMayChange(): boolean {
  return useSession().token.role === 'full';
}

interface ChangingProps {
  /** The action that the token must permit, such as "Creating organisations". */
  readonly what: string;
  readonly children: ReactNode;
}

/** Shows an action that changes the service. With a read-only token, it explains why the action is missing. */
export function Changing({ what, children }: ChangingProps) {
  const { token } = useSession();
  if (token.role === 'full') return children;
  return (
    <p className="hint">
      {what} needs a full token. The token <code>{token.name}</code> of this session may only read.
    </p>
  );
}
