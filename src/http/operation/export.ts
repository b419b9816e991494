import { invalidRequest } from '../../errors.ts';
import { accepts, jsonLines } from './accept.ts';
import type { Answer, Call } from './operation.ts';

/** The `Accept` header decides between a page and an export, so caches have to know. */
export const variesByAccept = { vary: 'accept' };

/** Whether the client asks for the whole list as NDJSON instead of a page. */
export function wantsLines({ headers, query }: Call): boolean {
  if (!accepts(jsonLines, headers.accept)) return false;
  if (query.limit === undefined) return true;
  // A client that asks for ten lines must not get a billion.
  const message = `cannot be combined with Accept: ${jsonLines}, which gives all of them; leave it out`;
  throw invalidRequest({ field: 'limit', code: 'not_combinable', message });
}

/** Lines of JSON. `cursor` is where the change feed goes on with what an export does not have. */
export function exportOf(lines: AsyncIterable<Buffer>, cursor?: string): Answer {
  const headers = { ...variesByAccept, 'content-type': jsonLines };
  return { status: 200, headers: cursor ? { ...headers, 'changes-cursor': cursor } : headers, body: lines };
}
