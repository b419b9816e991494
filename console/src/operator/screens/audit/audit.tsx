import { getRouteApi } from '@tanstack/react-router';
import { Filters, TextFilter } from '../../../parts/filters.tsx';
import { Page } from '../../../parts/page.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import { AuditList, auditCall } from './audit-list.tsx';

const route = getRouteApi('/frame/audit');

export function AuditScreen() {
  const { organisation } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page title="Audit log" lead="Who did what to organisations, keys and tokens, newest first.">
      <Filters>
        <TextFilter
          label="Organisation (slug)"
          value={organisation}
          onChange={(value) => navigate({ search: { organisation: value }, replace: true })}
        />
      </Filters>
      <AuditList organisation={organisation} />
      <Terminal calls={[auditCall(organisation)]} />
    </Page>
  );
}
