// The parts/ folder contains the components that all screens share.

import { useLocation } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';

/** The number of screens shown so far. On the first screen, the focus stays where the browser put it. */
let screensShown = 0;

interface PageProps {
  readonly title: string;
  readonly lead?: ReactNode;
  /** A link to the parent screen. */
  readonly back?: ReactNode;
  readonly children: ReactNode;
}

/** Shows a screen. After navigation, the focus moves to the heading, so that screen readers announce it. */
export function Page({ title, lead, back, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const pathname = useLocation({ select: (location) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a different path or title means a different screen.
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
