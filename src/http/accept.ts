/** One JSON object to a line. */
export const jsonLines = 'application/x-ndjson';

/** Whether a client asks for this media type by name, and would not rather have JSON, which everybody gets otherwise. */
export function accepts(mediaType: string, accept: string | string[] | undefined): boolean {
  const quality = qualitiesOf(String(accept ?? ''));
  const wanted = quality.get(mediaType) ?? 0;
  const json = quality.get('application/json') ?? quality.get('application/*') ?? quality.get('*/*') ?? 0;
  return wanted > 0 && wanted >= json;
}

/** Media types and how much each is wanted, from 0 to 1, of a header such as `text/html, application/json;q=0.5`. */
function qualitiesOf(accept: string): Map<string, number> {
  return new Map(
    accept.split(',').map((range) => {
      const [mediaType = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='));
      const quality = weight === undefined ? 1 : Number(weight.slice(2));
      return [mediaType, quality >= 0 && quality <= 1 ? quality : 1];
    }),
  );
}
