import { pagesQuery } from './pages.ts';
import { apiBase, call } from './request.ts';
import type { AccessRequest, AccessRequestPage } from './types.ts';

const path = '/v1/access-requests';

export const accessPagesQuery = pagesQuery<AccessRequestPage>(path, { limit: 50 });

/** The service refuses an empty list, so a list without ids is left out. */
export function requestAccess(
  customerIds: readonly string[],
  userIds: readonly string[],
): Promise<AccessRequest> {
  const body = {
    ...(customerIds.length > 0 && { customer_ids: customerIds }),
    ...(userIds.length > 0 && { user_ids: userIds }),
  };
  return call<AccessRequest>(path, { method: 'POST', body });
}

/** The file. The browser saves it as it arrives, so it may be larger than the memory of the page. */
export function collectedAddress(accessRequestId: string): string {
  return `${apiBase}${path}/${encodeURIComponent(accessRequestId)}/records`;
}
