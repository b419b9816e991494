import { Frame } from '../frame/frame.tsx';
import { Navigation, type NavigationProps, type ScreenLink } from '../frame/navigation.tsx';
import type { Session } from './api/types.ts';
import { SignedIn } from './signed-in.tsx';

const screens: readonly ScreenLink[] = [
  { to: '/', text: 'Now' },
  { to: '/organisations', text: 'Organisations' },
  { to: '/keys', text: 'Keys' },
  { to: '/audit', text: 'Audit log' },
  { to: '/service', text: 'Service' },
];

/** Shows the frame around the operator's screens. */
export function OperatorFrame() {
  return <Frame signedIn={SignedIn} nameOf={nameOf} Links={Links} />;
}

const nameOf = ({ token }: Session) =>
  `Operator: ${token.name}${token.role === 'full' ? '' : ' (read-only)'}`;

function Links({ onFollow }: NavigationProps) {
  return <Navigation links={screens} onFollow={onFollow} />;
}
