import { Link, type LinkProps } from '@tanstack/react-router';
import { uploadPermissions } from '../api/permissions.ts';
import { usePermits } from './signed-in.tsx';

interface Item {
  readonly to: NonNullable<LinkProps['to']>;
  readonly text: string;
  readonly permission?: string;
  /** Permissions of which each is enough instead. */
  readonly orAny?: readonly string[];
}

const items: readonly Item[] = [
  { to: '/', text: 'Overview', permission: 'data:read' },
  { to: '/uploads', text: 'Uploads', permission: 'data:read' },
  { to: '/upload-file', text: 'Upload a file', permission: 'data:write', orAny: uploadPermissions },
  { to: '/rejections', text: 'Rejections', permission: 'data:read' },
  { to: '/data', text: 'Data', permission: 'data:read' },
  { to: '/interactions', text: 'Interactions', permission: 'interactions:read' },
  { to: '/privacy', text: 'Privacy', permission: 'data:erase' },
  { to: '/key', text: 'Key and limits' },
];

/** A screen that the key may not see stays in the list, marked, and says itself what is missing. */
export function Navigation({ onFollow }: { readonly onFollow?: () => void }) {
  const may = usePermits();
  return (
    <nav aria-label="Screens">
      <ul className="navigation">
        {items.map(({ to, text, permission, orAny = [] }) => (
          <li key={text}>
            <Link
              to={to}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
              {...(onFollow ? { onClick: onFollow } : {})}
            >
              {text}
              {permission !== undefined && !may(permission) && !orAny.some(may) && (
                <span className="navigation-mark" title={`Needs the permission ${permission}`}>
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
