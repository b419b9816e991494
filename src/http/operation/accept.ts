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
