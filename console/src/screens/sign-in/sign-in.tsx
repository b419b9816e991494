import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { type Credential, sessionKey, signIn } from '../../api/session.ts';
import { linkToken } from '../../frame/link-token.ts';
import { Failure } from '../../parts/failure.tsx';
import { Line } from '../../parts/terminal.tsx';

const route = getRouteApi('/sign-in');

/** Only a path of this console: anything else could lead to a foreign site. */
function safePath(next: string | undefined): string {
  return next !== undefined && /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-in') ? next : '/';
}

function useSignIn() {
  const { next } = route.useSearch();
  const client = useQueryClient();
  const router = useRouter();
  return useMutation({
    mutationFn: (credential: Credential) => signIn(credential),
    onSuccess: (session) => {
      // Nothing of an earlier session may remain: it may have been another organisation's.
      client.clear();
      client.setQueryData(sessionKey, session);
      router.history.replace(`/console${safePath(next)}`);
    },
  });
}

export function SignIn() {
  const signingIn = useSignIn();
  const { mutate } = signingIn;
  const [byLink, setByLink] = useState(false);
  useEffect(() => {
    const link = linkToken();
    if (link === undefined) return;
    setByLink(true);
    mutate({ link });
  }, [mutate]);
  return (
    <main className="sign-in">
      <title>Sign in · Intake</title>
      <h1>
        <span className="brand">Intake</span> console
      </h1>
      {signingIn.error && (
        <Failure error={signingIn.error} what={byLink ? 'The link could not be used' : 'Signing in failed'} />
      )}
      {byLink && signingIn.isPending ? (
        <p role="status">Signing in with the link…</p>
      ) : (
        <KeyForm
          pending={signingIn.isPending}
          onKey={(key) => {
            setByLink(false);
            mutate({ key });
          }}
        />
      )}
    </main>
  );
}

function KeyForm({ pending, onKey }: { readonly pending: boolean; readonly onKey: (key: string) => void }) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const key = field.current?.value.trim() ?? '';
    if (key !== '') onKey(key);
  };
  return (
    <>
      <form onSubmit={submit} className="card">
        <div className="field">
          <label htmlFor={id}>API key</label>
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
            A key starts with <code>intake_</code>. It is sent once and kept neither in this browser nor in an
            address.
          </p>
        </div>
        <button type="submit" className="primary" disabled={pending}>
          {pending ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <details className="terminal">
        <summary>Where to get a key</summary>
        <p>
          The operator of the service issues keys. A key belongs to one organisation and lists what it may do:
        </p>
        <Line text="intake-server keys issue --organisation <name>" />
        <p>
          The operator can also make a link that signs you in without a key. A service started with npm run
          dev keeps its key in the file .intake/key.
        </p>
      </details>
    </>
  );
}
