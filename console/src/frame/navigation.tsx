import { Link, type LinkProps } from '@tanstack/react-router';

export interface ScreenLink {
  readonly to: NonNullable<LinkProps['to']>;
  readonly text: string;
  /** The reason why the screen is not available, or undefined if it is available. */
  readonly obstacle?: string | undefined;
}

export interface NavigationProps {
  readonly onFollow?: (() => void) | undefined;
}

/**
 * Shows the links to the screens. Screens that the user may not open stay in the list, with a note about the missing
 * permission.
 */
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
