import { RequestError } from '../errors.ts';
import { accepts, jsonLines } from './accept.ts';
import type { Answer, Call } from './operation.ts';

/** Which of the two an address gives depends on a header, and whoever keeps answers has to know. */
export const variesByAccept = { vary: 'accept' };

/** Whether a list is asked for as a whole, one to a line, in place of a page. */
export function wantsLines({ headers, query }: Call): boolean {
  if (!accepts(jsonLines, headers.accept)) return false;
  if (query.limit === undefined) return true;
  // Whoever asks for ten lines and gets a billion should hear of it before, not after.
  const message = `cannot be combined with Accept: ${jsonLines}, which gives all of them; leave it out`;
  throw new RequestError('invalid_request', {
    details: [{ field: 'limit', code: 'not_combinable', message }],
  });
}

export function exportOf(lines: AsyncIterable<Buffer>): Answer {
  return { status: 200, headers: { ...variesByAccept, 'content-type': jsonLines }, body: lines };
}
