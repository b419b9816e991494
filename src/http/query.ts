import { type Detail, RequestError } from '../errors.ts';
import { type Field, isProblem, type Scalar } from '../registry/fields.ts';

/** What was asked for, as it was read: an instant is a count, a limit a number. */
export type Query = Record<string, Scalar>;

/** Reads the query parameters of an operation. What is unknown or malformed is refused: a misspelt one must not be lost. */
export function readQuery(fields: Readonly<Record<string, Field>>, sent: unknown): Query {
  const query: Query = {};
  const details: Detail[] = [];
  for (const [name, value] of Object.entries(sent as Record<string, string | string[]>)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const problem = field ? readParameter(field, name, value, query) : unknownParameter(fields);
    if (problem) details.push({ field: name.slice(0, 64), ...problem });
  }
  if (details.length > 0) throw new RequestError('invalid_request', { details: details.slice(0, 20) });
  return query;
}

type ParameterProblem = Pick<Detail, 'code' | 'message'>;

function readParameter(
  field: Field,
  name: string,
  value: string | string[],
  query: Query,
): ParameterProblem | undefined {
  if (typeof value !== 'string') return { code: 'repeated_parameter', message: 'must be given once' };
  if (value === '') return { code: 'required', message: 'is empty; leave it out or give it a value' };
  const read = field.read(value);
  if (isProblem(read)) return read;
  query[name] = read;
  return undefined;
}

function unknownParameter(fields: Readonly<Record<string, Field>>): ParameterProblem {
  const names = Object.keys(fields);
  const known = names.length > 0 ? `this address takes ${names.join(', ')}` : 'this address takes none';
  return { code: 'unknown_parameter', message: `is not a known parameter; ${known}` };
}
