import { getRouteApi } from '@tanstack/react-router';
import { Filters, TextFilter, TimeFilter } from '../../../parts/filters.tsx';
import { Page } from '../../../parts/page.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import type { AuditFilter } from '../../api/activity.ts';
import { AuditList, auditCall } from './audit-list.tsx';

const route = getRouteApi('/frame/audit');

export function AuditScreen() {
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const change = (name: keyof AuditFilter) => (value: string | undefined) =>
    navigate({ search: (before) => ({ ...before, [name]: value }), replace: true });
  return (
    <Page title="Audit log" lead="Who did what to organisations, keys and tokens, newest first.">
      <Filters folded>
        <TextFilter
          label="Organisation (slug)"
          value={filter.organisation}
          onChange={change('organisation')}
        />
        <TextFilter
          label="Actor"
          value={filter.actor}
          onChange={change('actor')}
          placeholder="token:deploy"
        />
        <TextFilter
          label="Action"
          value={filter.action}
          onChange={change('action')}
          placeholder="key.issue"
        />
        <TimeFilter label="From" value={filter.since} onChange={change('since')} />
        <TimeFilter label="Until" value={filter.until} onChange={change('until')} />
      </Filters>
      <AuditList filter={filter} />
      <Terminal calls={[auditCall(filter)]} />
    </Page>
  );
}
