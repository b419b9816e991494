import { uploadPermissions } from '../api/permissions.ts';
import type { Session } from '../api/types.ts';
import { Frame } from './frame.tsx';
import { Navigation, type NavigationProps, type ScreenLink } from './navigation.tsx';
import { SignedIn, usePermits } from './signed-in.tsx';

interface Screen extends ScreenLink {
  readonly permission?: string;
  /** Alternative permissions, any one of which is enough to open the screen. */
  readonly orAny?: readonly string[];
}

const screens: readonly Screen[] = [
  { to: '/', text: 'Overview', permission: 'data:read' },
  { to: '/uploads', text: 'Uploads', permission: 'data:read' },
  { to: '/upload-file', text: 'Upload a file', permission: 'data:write', orAny: uploadPermissions },
  { to: '/rejections', text: 'Rejections', permission: 'data:read' },
  { to: '/data', text: 'Data', permission: 'data:read' },
  { to: '/interactions', text: 'Interactions', permission: 'interactions:read' },
  { to: '/access-requests', text: 'Access requests', permission: 'data:access' },
  { to: '/privacy', text: 'Erasures', permission: 'data:erase' },
  { to: '/key', text: 'Key and limits' },
];

/** Shows the frame around the organisation's screens. */
export function OrganisationFrame() {
  return <Frame signedIn={SignedIn} nameOf={nameOf} Links={Links} />;
}

const nameOf = ({ organisation }: Session) => organisation.name;

function Links({ onFollow }: NavigationProps) {
  const may = usePermits();
  const links = screens.map(({ to, text, permission, orAny = [] }) => {
    const isOpen = permission === undefined || [permission, ...orAny].some(may);
    return { to, text, obstacle: isOpen ? undefined : `Needs the permission ${permission}` };
  });
  return <Navigation links={links} onFollow={onFollow} />;
}
