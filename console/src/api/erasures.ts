import { queryOptions } from '@tanstack/react-query';
import { pagesQuery } from './pages.ts';
import { apiBase, call } from './request.ts';
import type { CountedErasure, Erasure, ErasurePage, RequestedErasure } from './types.ts';

export const erasurePagesQuery = pagesQuery<ErasurePage>('/v1/erasures', { limit: 50 });

export function erasureQuery(erasureId: string) {
  return queryOptions({
    queryKey: ['erasure', erasureId],
    queryFn: ({ signal }) => call<Erasure>(`/v1/erasures/${encodeURIComponent(erasureId)}`, { signal }),
  });
}

export interface ErasureRequest {
  readonly customer_ids?: readonly string[];
  readonly user_ids?: readonly string[];
  readonly mode: 'anonymise' | 'delete';
}

export function erasePeople(request: ErasureRequest): Promise<RequestedErasure> {
  return call<RequestedErasure>('/v1/erasures', { method: 'POST', body: request });
}

/** Counts what an erasure would erase, and erases nothing. */
export function countErasure(request: ErasureRequest): Promise<CountedErasure> {
  return call<CountedErasure>('/v1/erasures', { method: 'POST', query: { dry_run: true }, body: request });
}

/** Returns the URL of the human-readable certificate. A browser that opens this URL requests HTML. */
export function certificateAddress(erasureId: string): string {
  return `${apiBase()}/v1/erasures/${encodeURIComponent(erasureId)}/certificate`;
}
