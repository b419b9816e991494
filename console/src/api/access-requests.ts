import { pagesQuery } from './pages.ts';
import { apiBase, call } from './request.ts';
import type { AccessRequest, AccessRequestPage } from './types.ts';

const path = '/v1/access-requests';

export const accessPagesQuery = pagesQuery<AccessRequestPage>(path, { limit: 50 });

/** Requests the data stored about people. Omits a list that has no ids, because the service refuses an empty list. */
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

export function cancelAccess(accessRequestId: string): Promise<AccessRequest> {
  return call<AccessRequest>(`${path}/${encodeURIComponent(accessRequestId)}`, { method: 'DELETE' });
}

/** Returns the file's URL. The browser saves the file as it arrives, so the file may be larger than the page's memory. */
export function collectedAddress(accessRequestId: string): string {
  return `${apiBase()}${path}/${encodeURIComponent(accessRequestId)}/records`;
}
