import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from '../../api/pages.ts';
import { call, type Query } from '../../api/request.ts';
import type { ReceiptPage, RejectionGroup } from '../../api/types.ts';
import type { Organisation, OrganisationPage } from './types.ts';

export const organisationsPath = '/admin/v1/organisations';

/** Every slug; a text that is not one is never sent, nor shown in a line for the terminal. */
export const slugPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const organisationPath = (slug: string) => `${organisationsPath}/${slug}`;

export function organisationPagesQuery(search: string | undefined) {
  return pagesQuery<OrganisationPage>(organisationsPath, { search, limit: 50 });
}

export function organisationQuery(slug: string) {
  return queryOptions({
    queryKey: ['organisation', slug],
    queryFn: ({ signal }) => call<Organisation>(organisationPath(slug), { signal }),
  });
}

export function createOrganisation(wanted: {
  readonly slug: string;
  readonly name?: string;
}): Promise<Organisation> {
  return call<Organisation>(organisationsPath, { method: 'POST', body: wanted });
}

/** The limits that an organisation can have of its own, with their ranges. */
export const limitRanges = {
  requests_per_second_max: { min: 1, max: 1_000_000 },
  records_per_second_max: { min: 1, max: 1_000_000_000 },
  interactions_per_second_max: { min: 1, max: 1_000_000 },
  bytes_in_flight_max: { min: 1_024, max: 2_147_483_647 },
} as const;

export type LimitName = keyof typeof limitRanges;
export const limitNames = Object.keys(limitRanges) as LimitName[];

export type OrganisationChange = Partial<
  Record<LimitName, number | null> & { readonly name: string; readonly suspended: boolean }
>;

/** What is left out stays. A limit of null is the default of the service. */
export function changeOrganisation(slug: string, change: OrganisationChange): Promise<Organisation> {
  return call<Organisation>(organisationPath(slug), { method: 'PATCH', body: change });
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
