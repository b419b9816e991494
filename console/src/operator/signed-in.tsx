import { createContext, type ReactNode, useContext } from 'react';
import type { Session } from './api/types.ts';

/** The session, for every screen inside the frame. */
export const SignedIn = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SignedIn);
  if (session === null) throw new Error('This screen is shown only to someone who is signed in.');
  return session;
}

/** Whether the token of the session may change anything. */
export function useMayChange(): boolean {
  return useSession().token.role === 'full';
}

interface ChangingProps {
  /** What the token has to permit, such as "Creating organisations". */
  readonly what: string;
  readonly children: ReactNode;
}

/** Something that changes the service. With a read-only token, it says why it is missing. */
export function Changing({ what, children }: ChangingProps) {
  const { token } = useSession();
  if (token.role === 'full') return children;
  return (
    <p className="hint">
      {what} needs a full token. The token <code>{token.name}</code> of this session may only read.
    </p>
  );
}
