// http/: the only folder that knows Fastify: the operations as a list, the gate, the routes, the API description.

/** One JSON object to a line. */
export const jsonLines = 'application/x-ndjson';

/** Whether a body is declared as lines of JSON. */
export function isJsonLines(contentType: string | string[] | undefined): boolean {
  return (
    String(contentType ?? '')
      .split(';', 1)[0]
      ?.trim()
      .toLowerCase() === jsonLines
  );
}

/** Whether a client asks for this media type by name, and would not rather have JSON, which everybody gets otherwise. */
export function accepts(mediaType: string, accept: string | string[] | undefined): boolean {
  const quality = qualitiesOf(String(accept ?? ''));
  const wanted = quality.get(mediaType) ?? 0;
  const json = quality.get('application/json') ?? quality.get('application/*') ?? quality.get('*/*') ?? 0;
  return wanted > 0 && wanted >= json;
}

export type ContentEncoding = 'br' | 'gzip' | 'identity';

/** The encoding to answer in, by `Accept-Encoding`. Where nothing we have is accepted, it is sent as it is. */
export function preferredEncoding(accept: string | string[] | undefined): ContentEncoding {
  const quality = qualitiesOf(String(accept ?? ''));
  const any = quality.get('*');
  const wanted: [ContentEncoding, number][] = [
    ['br', quality.get('br') ?? any ?? 0],
    ['gzip', quality.get('gzip') ?? quality.get('x-gzip') ?? any ?? 0],
    // Accepted unless refused, but less than what is asked for by name.
    ['identity', quality.get('identity') ?? 0],
  ];
  const most = Math.max(...wanted.map(([, q]) => q));
  return most > 0 ? (wanted.find(([, q]) => q === most)?.[0] ?? 'identity') : 'identity';
}

/** What is named and how much each is wanted, from 0 to 1, of a header such as `text/html, application/json;q=0.5`. */
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
