import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from '../../api/pages.ts';
import { call } from '../../api/request.ts';
import type { AuditPage, BusiestOrganisations, ServiceState, Traffic } from './types.ts';

/** How often a screen that shows the current state refreshes while it is visible. */
export const refreshSeconds = 15;

export interface Busiest {
  readonly by: keyof Traffic;
  readonly minutes: number;
  readonly limit: number;
}

export const topPath = '/admin/v1/top';

export function busiestQuery({ by, minutes, limit }: Busiest) {
  return queryOptions({
    queryKey: ['top', by, minutes, limit],
    queryFn: ({ signal }) => call<BusiestOrganisations>(topPath, { query: { by, minutes, limit }, signal }),
    refetchInterval: refreshSeconds * 1_000,
  });
}

export const auditPath = '/admin/v1/audit';

export interface AuditFilter {
  readonly organisation?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export function auditPagesQuery(filter: AuditFilter) {
  return pagesQuery<AuditPage>(auditPath, { ...filter, limit: 20 });
}

export const statePath = '/admin/v1/service';

export const stateQuery = queryOptions({
  queryKey: ['service'],
  queryFn: ({ signal }) => call<ServiceState>(statePath, { signal }),
  refetchInterval: refreshSeconds * 1_000,
});

/** The same query as `stateQuery`, for screens that need only the settings, which rarely change. */
export const settingsQuery = queryOptions({ ...stateQuery, staleTime: 600_000, refetchInterval: false });
