import { Badge } from '../../parts/badge.tsx';
import type { Organisation } from '../api/types.ts';

export function OrganisationState({ organisation }: { readonly organisation: Organisation }) {
  if (organisation.removal !== null) return <Badge tone="bad">Being removed</Badge>;
  if (organisation.deleted_at !== null) return <Badge tone="bad">Deleted</Badge>;
  return organisation.suspended_at === null ? (
    <Badge tone="good">Active</Badge>
  ) : (
    <Badge tone="bad">Suspended</Badge>
  );
}
