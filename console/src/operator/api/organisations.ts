import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from '../../api/pages.ts';
import { ApiError, call, type Query } from '../../api/request.ts';
import type { ReceiptPage, RejectionGroup } from '../../api/types.ts';
import { refreshSeconds } from './activity.ts';
import type { LakeState, Organisation, OrganisationPage } from './types.ts';

export const organisationsPath = '/admin/v1/organisations';

/** Matches every valid slug. Text that does not match is neither sent nor shown in a terminal line. */
export const slugPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const organisationPath = (slug: string) => `${organisationsPath}/${slug}`;

export function organisationPagesQuery(search: string | undefined) {
  return pagesQuery<OrganisationPage>(organisationsPath, { search, limit: 50 });
}

export function organisationQuery(slug: string) {
  return queryOptions({
    queryKey: ['organisation', slug],
    queryFn: ({ signal }) => call<Organisation>(organisationPath(slug), { signal }),
    refetchInterval: ({ state: { error } }) => !isNotFound(error) && refreshSeconds * 1_000,
  });
}

export const lakePath = (slug: string) => `${organisationPath(slug)}/lake`;

export function lakeQuery(slug: string) {
  return queryOptions({
    queryKey: ['lake', slug],
    queryFn: ({ signal }) => call<LakeState>(lakePath(slug), { signal }),
    refetchInterval: ({ state: { error } }) => !isNotFound(error) && refreshSeconds * 1_000,
  });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

export function createOrganisation(wanted: {
  readonly slug: string;
  readonly name?: string;
}): Promise<Organisation> {
  return call<Organisation>(organisationsPath, { method: 'POST', body: wanted });
}

/** An organisation's limits, with the range of each limit. */
export const limitRanges = {
  requests_per_second_max: { min: 1, max: 1_000_000 },
  records_per_second_max: { min: 1, max: 1_000_000_000 },
  interactions_per_second_max: { min: 1, max: 1_000_000 },
  bytes_in_flight_max: { min: 1_024, max: 2_147_483_647 },
  records_stored_max: { min: 1, max: Number.MAX_SAFE_INTEGER },
  bytes_stored_max: { min: 1, max: Number.MAX_SAFE_INTEGER },
} as const;

export type LimitName = keyof typeof limitRanges;
export const limitNames = Object.keys(limitRanges) as LimitName[];

/** The quotas for stored data. By default, there are no quotas. */
export const quotaNames = ['records_stored_max', 'bytes_stored_max'] as const;
export type QuotaName = (typeof quotaNames)[number];

export function isQuota(name: LimitName): name is QuotaName {
  return name === 'records_stored_max' || name === 'bytes_stored_max';
}

export const keptNames = ['interactions_kept_days', 'receipts_kept_days', 'rejections_kept_days'] as const;
export type KeptName = (typeof keptNames)[number];
export const keptDaysMax = 3_650;

export type OrganisationChange = Partial<
  Record<LimitName | KeptName, number | null> & {
    readonly name: string;
    readonly suspended: boolean;
    readonly lake: boolean;
    readonly recommendations_report: boolean;
  }
>;

/** Changes an organisation. Omitted fields stay unchanged. Null means the service's default, or no quota. */
export function changeOrganisation(slug: string, change: OrganisationChange): Promise<Organisation> {
  return call<Organisation>(organisationPath(slug), { method: 'PATCH', body: change });
}

export function deleteOrganisation(slug: string): Promise<Organisation> {
  return call<Organisation>(organisationPath(slug), { method: 'DELETE' });
}

export const restorePath = (slug: string) => `${organisationPath(slug)}/restore`;

export function restoreOrganisation(slug: string): Promise<Organisation> {
  return call<Organisation>(restorePath(slug), { method: 'POST' });
}

export function uploadPagesQuery(slug: string, query: Query) {
  return pagesQuery<ReceiptPage>(`${organisationPath(slug)}/requests`, { ...query, limit: 25 });
}

export function rejectionGroupsQuery(slug: string) {
  return queryOptions({
    queryKey: ['rejection-groups', slug],
    queryFn: ({ signal }) =>
      call<{ readonly rejections: readonly RejectionGroup[] }>(
        `${organisationPath(slug)}/rejections/summary`,
        { signal },
      ),
  });
}
