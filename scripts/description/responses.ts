import type { ApiName } from '../../src/errors.ts';
import type { DescribedAnswer, JsonSchema, Operation } from '../../src/http/operation/operation.ts';
import { codesWith } from './errors.ts';
import type { Examples } from './examples.ts';

/**
 * Who may call the operation: anyone, the operator with an admin token, or a client whose key has the required permission.
 */
type Audience = 'anyone' | 'operator' | 'key';

function audienceOf({ permission, path }: Operation<never>): Audience {
  if (permission !== null) return 'key';
  return path.startsWith('/admin/') ? 'operator' : 'anyone';
}

export function needsNoSecret(operation: Operation<never>): boolean {
  return audienceOf(operation) === 'anyone';
}

/** The response headers, which are written once and then referenced. */
const headers = {
  'X-Request-Id': {
    description: 'identifies this request',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'seconds to wait before sending the request again',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
  RateLimit: {
    description: 'what remains of each limit, and the seconds until its window ends',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description: 'each limit: its quota and its window in seconds',
    schema: { type: 'string' },
  },
  'Intake-Quota': {
    description:
      'if 80 % or more of a quota of the organisation is used: of records, of bytes, or of both, what is `used` and what it ' +
      'may be at most; not with a browser key',
    schema: { type: 'string' },
    example: '"records";used=810000;max=1000000',
  },
  'Changes-Cursor': {
    description:
      'with NDJSON: where the change feed continues with later changes; send it as `after` of `/v1/changes`',
    schema: { type: 'string' },
  },
  'Idempotency-Key': {
    description:
      'the `Idempotency-Key` of the request, in every answer to a request with one in ASCII; a client can check that the answer is to its request',
    schema: { type: 'string' },
  },
  'Idempotency-Replayed': {
    description:
      'the whole answer repeats the answer to the first request with this `Idempotency-Key`; absent if this request stored a batch',
    schema: { type: 'string', enum: ['true'] },
  },
};

function refTo(kind: 'headers' | 'responses' | 'schemas', name: string): JsonSchema {
  return { $ref: `#/components/${kind}/${name}` };
}

const error = refTo('schemas', 'Error');

/** The errors that any request can get, with the name of each response and when it is sent. */
const refusals = {
  400: [
    'BadRequest',
    'The request is malformed, or a parameter or field is invalid; `details` lists each problem.',
  ],
  401: ['Unauthorized', 'The API key or the admin token is missing or invalid.'],
  403: [
    'Forbidden',
    'The key does not allow this or this origin, its organisation is suspended or has used up its quota, or HTTPS was ' +
      'not used.',
  ],
  408: ['RequestTimeout', 'The request took too long to arrive; send it again.'],
  410: ['Gone', 'The organisation was deleted.'],
  413: ['ContentTooLarge', 'The body is too large, as sent or once decompressed; split it.'],
  415: ['UnsupportedMediaType', 'The body is not JSON, or its compression is not supported.'],
  417: ['ExpectationFailed', 'The only expectation that can be met is `100-continue`.'],
  429: [
    'TooManyRequests',
    'Too many requests, records, bytes or wrong keys; wait for the number of seconds in `Retry-After`.',
  ],
  431: ['HeadersTooLarge', 'The address and the headers are too large; shorten them.'],
  500: ['InternalError', 'Something went wrong on our side; send the request again.'],
  503: ['Unavailable', 'The service is not available at the moment; send the request again.'],
} as const;
type Refusal = keyof typeof refusals;

function refusalsOf(operation: Operation<never>): Refusal[] {
  const ofAny: Refusal[] = [400, 408, 417, 431, 500, 503];
  const ofSecret: Refusal[] = needsNoSecret(operation) ? [] : [401, 403, 429];
  const ofKey: Refusal[] = audienceOf(operation) === 'key' ? [410] : [];
  // A body is read whenever the method allows one, even if the operation expects none.
  const ofBody: Refusal[] = operation.method === 'GET' ? [] : [413, 415];
  return [...ofAny, ...ofSecret, ...ofKey, ...ofBody];
}

/** Returns every response that an operation can give, by status. */
export function responsesOf(operation: Operation<never>, examples: Examples): JsonSchema {
  const shared = refusalsOf(operation).map((status) => [status, refTo('responses', refusals[status][0])]);
  const own = Object.entries(operation.answers).map(([status, answer]) => [
    status,
    answer.sharedAs === undefined
      ? describeAnswer(Number(status), answer, audienceOf(operation), examples[`${operation.id} ${status}`])
      : refTo('responses', answer.sharedAs),
  ]);
  return Object.fromEntries([...shared, ...own]);
}

function describeAnswer(
  status: number,
  answer: DescribedAnswer,
  audience: Audience,
  example?: unknown,
): JsonSchema {
  const { description, schema, mediaType = 'application/json', otherContent } = answer;
  const { canBeReplayed, hasChangesCursor, hasQuota } = answer;
  return {
    description,
    headers: {
      ...headersOf(status, audience),
      ...(hasQuota && { 'Intake-Quota': refTo('headers', 'Intake-Quota') }),
      ...(hasChangesCursor && { 'Changes-Cursor': refTo('headers', 'Changes-Cursor') }),
      ...(canBeReplayed && {
        'Idempotency-Key': refTo('headers', 'Idempotency-Key'),
        'Idempotency-Replayed': refTo('headers', 'Idempotency-Replayed'),
      }),
    },
    content: {
      [mediaType]: { schema, ...(example !== undefined && { example }) },
      ...otherContent,
    },
  };
}

function headersOf(status: number, audience: Audience): JsonSchema {
  const names: (keyof typeof headers)[] = ['X-Request-Id'];
  if (status === 429 || status >= 500) names.push('Retry-After');
  if (audience === 'key' && ![401, 408, 417, 431].includes(status))
    names.push('RateLimit', 'RateLimit-Policy');
  if (audience === 'key' && status === 403) names.push('Intake-Quota');
  return {
    ...Object.fromEntries(names.map((name) => [name, refTo('headers', name)])),
    // This header is present only if a failed batch can be sent again.
    ...(status === 207 && { 'Retry-After': { ...headers['Retry-After'], required: false } }),
  };
}

/** Returns the components to which the responses of these operations refer. */
export function sharedResponses(
  api: ApiName,
  operations: readonly Operation<never>[],
  examples: Examples,
): JsonSchema {
  const [audience = 'anyone'] = operations.map(audienceOf);
  const used = new Set(operations.flatMap(refusalsOf));
  const responses = [...used].sort().map((status) => {
    const [name, when] = refusals[status];
    const description = `${when} Codes: ${codesWith(api, status)}.`;
    return [name, describeAnswer(status, { description, schema: error }, audience)];
  });
  const own = operations.flatMap((operation) =>
    Object.entries(operation.answers)
      .filter(([, { sharedAs }]) => sharedAs !== undefined)
      .map(([status, answer]) => [
        answer.sharedAs,
        describeAnswer(Number(status), answer, audienceOf(operation), examples[answer.sharedAs ?? '']),
      ]),
  );
  const ofKeys = [
    ...['RateLimit', 'RateLimit-Policy', 'Intake-Quota', 'Changes-Cursor'],
    ...['Idempotency-Key', 'Idempotency-Replayed'],
  ];
  const named = Object.entries(headers).filter(([name]) => audience === 'key' || !ofKeys.includes(name));
  return { responses: Object.fromEntries([...responses, ...own]), headers: Object.fromEntries(named) };
}
