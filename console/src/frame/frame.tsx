import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Outlet, useRouter } from '@tanstack/react-router';
import { type ComponentType, type Context, useEffect, useRef } from 'react';
import { type AnySession, forgetSession, sessionQuery, signOut } from '../api/session.ts';
import { timeZoneName } from '../format/format.ts';
import { Loading } from '../parts/answer.tsx';
import { Failure } from '../parts/failure.tsx';
import type { NavigationProps } from './navigation.tsx';
import { ThemeSwitch } from './theme-switch.tsx';

interface FrameProps<S> {
  /** The context that passes the session to the screens. */
  readonly signedIn: Context<S | null>;
  /** Returns the name of the signed-in organisation or operator. */
  readonly nameOf: (session: S) => string;
  readonly Links: ComponentType<NavigationProps>;
}

/**
 * Shows everything around a screen. Without a session, it redirects to the sign-in page, which later returns to this screen.
 */
export function Frame<S extends AnySession>({ signedIn: SignedIn, nameOf, Links }: FrameProps<S>) {
  const session = useQuery(sessionQuery<S>());
  if (session.data === null) return <ToSignIn />;
  return (
    <SignedIn value={session.data ?? null}>
      <button type="button" className="skip-link" onClick={skipToMain}>
        Skip to the content
      </button>
      <div className="frame">
        <Side name={session.data === undefined ? undefined : nameOf(session.data)} Links={Links} />
        <main id="main" tabIndex={-1}>
          {session.error && (
            <Failure
              error={session.error}
              what="The session could not be read"
              retry={() => session.refetch()}
            />
          )}
          {session.data !== undefined && <Outlet />}
          {session.isPending && <Loading what="Session" rows={6} />}
        </main>
      </div>
    </SignedIn>
  );
}

/**
 * Redirects to the sign-in page and passes the URL to return to. The redirect runs only once, because while the sign-in page
 * loads, the current URL is already that of the sign-in page.
 */
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

/** Moves the focus to the main content. A fragment link would leave the fragment in the URL. */
function skipToMain(): void {
  document.getElementById('main')?.focus();
}

interface SideProps {
  /** The name, or undefined until the session is loaded. */
  readonly name: string | undefined;
  readonly Links: ComponentType<NavigationProps>;
}

function Side({ name, Links }: SideProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const closeMenu = () => menu.current?.removeAttribute('open');
  return (
    <header className="side">
      <div className="side-head">
        <span className="brand">Intake</span>
        <span className="organisation">{name ?? ''}</span>
      </div>
      {name !== undefined && (
        <>
          <details className="menu" ref={menu}>
            <summary>Menu</summary>
            <Links onFollow={closeMenu} />
            <SideFoot />
          </details>
          <div className="side-wide">
            <Links />
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
      <p className="hint">Times in {timeZoneName()}</p>
      <button type="button" disabled={leaving.isPending} onClick={() => leaving.mutate()}>
        Sign out
      </button>
      {leaving.error && <Failure error={leaving.error} what="Signing out failed" />}
    </div>
  );
}
