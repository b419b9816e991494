import { Link, type LinkProps } from '@tanstack/react-router';

export interface ScreenLink {
  readonly to: NonNullable<LinkProps['to']>;
  readonly text: string;
  /** Why the screen shows nothing, if it does not. */
  readonly obstacle?: string | undefined;
}

export interface NavigationProps {
  readonly onFollow?: (() => void) | undefined;
}

/** A screen that the reader may not see stays in the list, marked, and says itself what is missing. */
export function Navigation({ links, onFollow }: NavigationProps & { readonly links: readonly ScreenLink[] }) {
  return (
    <nav aria-label="Screens">
      <ul className="navigation">
        {links.map(({ to, text, obstacle }) => (
          <li key={text}>
            <Link
              to={to}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
              {...(onFollow ? { onClick: onFollow } : {})}
            >
              {text}
              {obstacle !== undefined && (
                <span className="navigation-mark" title={obstacle}>
                  no access
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
