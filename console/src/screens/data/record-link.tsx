import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

interface RecordLinkProps {
  readonly type: string;
  readonly id: string;
  readonly children: ReactNode;
}

/** Links to a record. A person's id is passed in the history state, because a URL would end up in logs. */
export function RecordLink({ type, id, children }: RecordLinkProps) {
  if (type === 'customers')
    return (
      <Link to="/data/customers/person" state={{ person: { customer_id: id } }}>
        {children}
      </Link>
    );
  return (
    <Link to="/data/$type/$id" params={{ type, id }}>
      {children}
    </Link>
  );
}
