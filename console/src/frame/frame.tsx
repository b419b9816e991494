import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Outlet, useRouter } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { forgetSession, sessionQuery, signOut } from '../api/session.ts';
import type { Session } from '../api/types.ts';
import { Loading } from '../parts/answer.tsx';
import { Failure } from '../parts/failure.tsx';
import { Navigation } from './navigation.tsx';
import { SignedIn } from './signed-in.tsx';
import { ThemeSwitch } from './theme-switch.tsx';

/** Everything around a screen. Without a session it leads to the sign-in, and from there back. */
export function Frame() {
  const session = useQuery(sessionQuery);
  if (session.data === null) return <ToSignIn />;
  return (
    <SignedIn value={session.data ?? null}>
      <button type="button" className="skip-link" onClick={skipToMain}>
        Skip to the content
      </button>
      <div className="frame">
        <Side session={session.data} />
        <main id="main" tabIndex={-1}>
          {session.error && (
            <Failure
              error={session.error}
              what="The session could not be read"
              retry={() => session.refetch()}
            />
          )}
          {session.data && <Outlet />}
          {session.isPending && <Loading what="Session" rows={6} />}
        </main>
      </div>
    </SignedIn>
  );
}

/** Once, with the address of that moment: while the sign-in loads, the address is already that of the sign-in. */
function ToSignIn() {
  const router = useRouter();
  useEffect(() => {
    const { href } = router.state.location;
    void router.navigate({
      to: '/sign-in',
      search: { next: href === '/' ? undefined : href },
      replace: true,
    });
  }, [router]);
  return null;
}

/** Not a link to a fragment: that would stay in the address. */
function skipToMain(): void {
  document.getElementById('main')?.focus();
}

function Side({ session }: { readonly session: Session | undefined }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const closeMenu = () => menu.current?.removeAttribute('open');
  return (
    <header className="side">
      <div className="side-head">
        <span className="brand">Intake</span>
        <span className="organisation">{session?.organisation.name ?? ''}</span>
      </div>
      {session && (
        <>
          <details className="menu" ref={menu}>
            <summary>Menu</summary>
            <Navigation onFollow={closeMenu} />
            <SideFoot />
          </details>
          <div className="side-wide">
            <Navigation />
            <SideFoot />
          </div>
        </>
      )}
    </header>
  );
}

function SideFoot() {
  const client = useQueryClient();
  const leaving = useMutation({
    mutationFn: signOut,
    onSuccess: () => forgetSession(client),
  });
  return (
    <div className="side-foot">
      <ThemeSwitch />
      <button type="button" disabled={leaving.isPending} onClick={() => leaving.mutate()}>
        Sign out
      </button>
      {leaving.error && <Failure error={leaving.error} what="Signing out failed" />}
    </div>
  );
}
