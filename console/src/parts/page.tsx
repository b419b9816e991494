// parts/: what every screen is made of.

import { useLocation } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';

/** Screens that were shown before; the first one leaves the focus where the browser put it. */
let screensShown = 0;

interface PageProps {
  readonly title: string;
  readonly lead?: ReactNode;
  /** A link to the screen above this one. */
  readonly back?: ReactNode;
  readonly children: ReactNode;
}

/** A screen. After a navigation the focus moves to its heading, so that a screen reader announces it. */
export function Page({ title, lead, back, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const pathname = useLocation({ select: (location) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: each of them means another screen.
  useEffect(() => {
    if (screensShown++ > 0) heading.current?.focus({ preventScroll: true });
  }, [pathname, title]);
  return (
    <>
      <title>{`${title} · Intake`}</title>
      <header className="page-head">
        {back && <p className="page-back">{back}</p>}
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead && <p className="page-lead">{lead}</p>}
      </header>
      {children}
    </>
  );
}
