import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useId, useRef } from 'react';
import { type Credential, sessionKey, signIn } from '../api/session.ts';

const route = getRouteApi('/sign-in');

/** Allows only paths within this console, because anything else could lead to another site. */
function safePath(next: string | undefined): string {
  return next !== undefined && /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-in') ? next : '/';
}

/** Signs in, then navigates to the page that the user requested. */
export function useSignIn() {
  const { next } = route.useSearch();
  const client = useQueryClient();
  const router = useRouter();
  return useMutation({
    mutationFn: (credential: Credential) => signIn(credential),
    onSuccess: (session) => {
      // Clear all data from an earlier session, because it may belong to a different organisation.
      client.clear();
      client.setQueryData(sessionKey, session);
      router.history.replace(`/console${safePath(next)}`);
    },
  });
}

/** Shows the sign-in page, which has no frame. The page name comes after the service name. */
export function SignInPage({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  const { next } = route.useSearch();
  return (
    <main className="sign-in">
      <title>Sign in · Intake</title>
      <h1>
        <span className="brand">Intake</span> {name}
      </h1>
      {next !== undefined && (
        <p>Sign in to continue to the screen you opened. A session lasts at most 12 hours.</p>
      )}
      {children}
    </main>
  );
}

interface SecretFormProps {
  /** The name of the credential, such as a key or a token. */
  readonly label: string;
  readonly hint: ReactNode;
  readonly pending: boolean;
  readonly onSecret: (secret: string) => void;
}

export function SecretForm({ label, hint, pending, onSecret }: SecretFormProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const secret = field.current?.value.trim() ?? '';
    if (secret !== '') onSecret(secret);
  };
  return (
    <form onSubmit={submit} className="card">
      <div className="field">
        <label htmlFor={id}>{label}</label>
        <input
          ref={field}
          id={id}
          type="password"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          required
          aria-describedby={`${id}-hint`}
        />
        <p className="hint" id={`${id}-hint`}>
          {hint} It is sent once, and never stored in this browser or put in an address.
        </p>
      </div>
      <button type="submit" className="primary" disabled={pending}>
        {pending ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  );
}
