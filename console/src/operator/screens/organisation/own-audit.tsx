import { Terminal } from '../../../parts/terminal.tsx';
import { AuditList, auditCall } from '../audit/audit-list.tsx';
import { useOrganisation } from './one-organisation.ts';

export function OwnAuditScreen() {
  const { slug } = useOrganisation();
  return (
    <>
      <AuditList filter={{ organisation: slug }} />
      <Terminal calls={[auditCall({ organisation: slug })]} />
    </>
  );
}
