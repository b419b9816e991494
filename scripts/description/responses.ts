import type { ApiName } from '../../src/errors.ts';
import type { DescribedAnswer, JsonSchema, Operation } from '../../src/http/operation/operation.ts';
import { codesWith } from './errors.ts';
import type { Examples } from './examples.ts';

/** Who may call: anyone, whoever has the admin token, or a key with the permission. */
type Audience = 'anyone' | 'operator' | 'key';

function audienceOf({ permission, path }: Operation<never>): Audience {
  if (permission !== null) return 'key';
  return path.startsWith('/admin/') ? 'operator' : 'anyone';
}

export function needsNoSecret(operation: Operation<never>): boolean {
  return audienceOf(operation) === 'anyone';
}

/** Headers of answers, written once and referenced. */
const headers = {
  'X-Request-Id': {
    description: 'names this request',
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
      'with NDJSON: where the change feed goes on with what is stored from now on; send it as `after` of `/v1/changes`',
    schema: { type: 'string' },
  },
  'Idempotency-Replayed': {
    description:
      'the whole answer repeats that of the first request with this `Idempotency-Key`; absent if this request stored a batch',
    schema: { type: 'string', enum: ['true'] },
  },
};

function refTo(kind: 'headers' | 'responses' | 'schemas', name: string): JsonSchema {
  return { $ref: `#/components/${kind}/${name}` };
}

const error = refTo('schemas', 'Error');

/** The errors of any request: the name of the response and when it is sent. */
const refusals = {
  400: ['BadRequest', 'The request is malformed, or a parameter or field is wrong; `details` names each.'],
  401: ['Unauthorized', 'The API key or the admin token is missing or wrong.'],
  403: [
    'Forbidden',
    'The key may not do this, not from this origin, its organisation is suspended or may store nothing more, or HTTPS was ' +
      'not used.',
  ],
  408: ['RequestTimeout', 'The request took too long to arrive; send it again.'],
  410: ['Gone', 'The organisation was deleted.'],
  413: ['ContentTooLarge', 'The body is too large, as sent or once decompressed; split it.'],
  415: ['UnsupportedMediaType', 'The body is not JSON, or is compressed in a way that is not supported.'],
  417: ['ExpectationFailed', 'The only expectation that can be met is `100-continue`.'],
  429: [
    'TooManyRequests',
    'Too many requests, records, bytes or wrong keys; wait for the seconds in `Retry-After`.',
  ],
  431: ['HeadersTooLarge', 'The address and the headers are too large; shorten them.'],
  500: ['InternalError', 'Something went wrong on our side; send the request again.'],
  503: ['Unavailable', 'The service is not available just now; send the request again.'],
} as const;
type Refusal = keyof typeof refusals;

function refusalsOf(operation: Operation<never>): Refusal[] {
  const ofAny: Refusal[] = [400, 408, 417, 431, 500, 503];
  const ofSecret: Refusal[] = needsNoSecret(operation) ? [] : [401, 403, 429];
  const ofKey: Refusal[] = audienceOf(operation) === 'key' ? [410] : [];
  // A body is read wherever one may be sent, even if none is expected.
  const ofBody: Refusal[] = operation.method === 'GET' ? [] : [413, 415];
  return [...ofAny, ...ofSecret, ...ofKey, ...ofBody];
}

/** Every status with which an operation can be answered. */
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
      ...(canBeReplayed && { 'Idempotency-Replayed': refTo('headers', 'Idempotency-Replayed') }),
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
    // Only if a batch failed that can be sent again.
    ...(status === 207 && { 'Retry-After': { ...headers['Retry-After'], required: false } }),
  };
}

/** The components that the responses of these operations refer to. */
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
  const ofKeys = ['RateLimit', 'RateLimit-Policy', 'Intake-Quota', 'Changes-Cursor', 'Idempotency-Replayed'];
  const named = Object.entries(headers).filter(([name]) => audience === 'key' || !ofKeys.includes(name));
  return { responses: Object.fromEntries([...responses, ...own]), headers: Object.fromEntries(named) };
}
