import { Badge } from '../../parts/badge.tsx';
import type { Organisation } from '../api/types.ts';

export function OrganisationState({ organisation }: { readonly organisation: Organisation }) {
  return organisation.suspended_at === null ? (
    <Badge tone="good">Active</Badge>
  ) : (
    <Badge tone="bad">Suspended</Badge>
  );
}
