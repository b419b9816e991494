import { type Detail, invalidRequest } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Field, isProblem, type Scalar } from '../../registry/fields.ts';
import { shownName } from '../../registry/warnings.ts';

/** Parsed query parameters. Instants become numbers of microseconds, and limits become numbers. */
export type Query = Record<string, Scalar>;

/** Reads an operation's query parameters. Unknown and malformed parameters get a 400, so that a typo is never ignored. */
export function readQuery(fields: Readonly<Record<string, Field>>, url: string): Query {
  const query: Query = {};
  const details: Detail[] = [];
  for (const [name, value] of parametersOf(url)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const problem = field ? readParameter(field, name, value, query) : unknownParameter(fields);
    if (problem) details.push({ field: shownName(name), ...problem });
  }
  if (details.length > 0) throw invalidRequest(...details.slice(0, limits.parameterProblemsMax));
  return query;
}

/** A value that cannot be decoded becomes undefined. Fastify's own parser would return it unchanged. */
function parametersOf(url: string): [name: string, value: string | undefined][] {
  const start = url.indexOf('?');
  const pairs = start < 0 ? [] : url.slice(start + 1).split('&');
  return pairs
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [decode(name) ?? name, decode(value.join('='))];
    });
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

type ParameterProblem = Pick<Detail, 'code' | 'message'>;

function readParameter(
  field: Field,
  name: string,
  value: string | undefined,
  query: Query,
): ParameterProblem | undefined {
  if (value === undefined) return { code: 'invalid_format', message: 'is not percent-encoded UTF-8' };
  if (Object.hasOwn(query, name)) return { code: 'repeated_parameter', message: 'must be given only once' };
  if (value === '') return { code: 'required', message: 'is empty; leave it out or give it a value' };
  const read = field.read(value);
  if (isProblem(read)) return read;
  query[name] = read;
  return undefined;
}

function unknownParameter(fields: Readonly<Record<string, Field>>): ParameterProblem {
  const names = Object.keys(fields);
  const known = names.length > 0 ? `this address accepts ${names.join(', ')}` : 'this address accepts none';
  return { code: 'unknown_parameter', message: `is not a known parameter; ${known}` };
}
