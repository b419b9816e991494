import { invalidRequest } from '../../errors.ts';
import type { Answer, Call } from './operation.ts';

export const jsonLines = 'application/x-ndjson';

export function isJsonLines(contentType: string | string[] | undefined): boolean {
  return (
    String(contentType ?? '')
      .split(';', 1)[0]
      ?.trim()
      .toLowerCase() === jsonLines
  );
}

/** Returns whether the client requests this media type by name and does not prefer JSON, which is the default. */
export function accepts(mediaType: string, accept: string | string[] | undefined): boolean {
  const quality = qualitiesOf(String(accept ?? ''));
  const wanted = quality.get(mediaType) ?? 0;
  const json = quality.get('application/json') ?? quality.get('application/*') ?? quality.get('*/*') ?? 0;
  return wanted > 0 && wanted >= json;
}

export type ContentEncoding = 'br' | 'gzip' | 'identity';

/** Falls back to `identity` if the client accepts none of our encodings. */
export function preferredEncoding(accept: string | string[] | undefined): ContentEncoding {
  const quality = qualitiesOf(String(accept ?? ''));
  const any = quality.get('*');
  const wanted: [ContentEncoding, number][] = [
    ['br', quality.get('br') ?? any ?? 0],
    ['gzip', quality.get('gzip') ?? quality.get('x-gzip') ?? any ?? 0],
    // `identity` is always acceptable unless it is excluded, but it ranks below any encoding that the client lists.
    ['identity', quality.get('identity') ?? 0],
  ];
  const most = Math.max(...wanted.map(([, q]) => q));
  return most > 0 ? (wanted.find(([, q]) => q === most)?.[0] ?? 'identity') : 'identity';
}

/** Parses a header such as `text/html, application/json;q=0.5`. */
function qualitiesOf(accept: string): Map<string, number> {
  return new Map(
    accept.split(',').map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='));
      const quality = weight === undefined ? 1 : Number(weight.slice(2));
      return [name, quality >= 0 && quality <= 1 ? quality : 1];
    }),
  );
}

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
