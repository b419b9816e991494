import { invalidRequest } from '../../errors.ts';
import { accepts, jsonLines } from './accept.ts';
import type { Answer, Call } from './operation.ts';

/** The `Accept` header decides between a page and an export, so caches must take it into account. */
export const variesByAccept = { vary: 'accept' };

/** Returns whether the client requests the whole list as NDJSON instead of a page. */
export function wantsLines({ headers, query }: Call): boolean {
  if (!accepts(jsonLines, headers.accept)) return false;
  if (query.limit === undefined) return true;
  // If the limit were ignored, a client that requests ten lines could get a billion.
  const message = `cannot be combined with Accept: ${jsonLines}, which returns all of them; leave it out`;
  throw invalidRequest({ field: 'limit', code: 'not_combinable', message });
}

/** Returns an NDJSON response. The change feed can continue from `cursor` after the export. */
export function exportOf(lines: AsyncIterable<Buffer>, cursor?: string): Answer {
  const headers = { ...variesByAccept, 'content-type': jsonLines };
  return { status: 200, headers: cursor ? { ...headers, 'changes-cursor': cursor } : headers, body: lines };
}
