import type { FastifyRequest } from 'fastify';
import { invalidRequest } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { browserKey } from '../../suppression/idempotency-keys.ts';
import type { Call, JsonSchema } from './operation.ts';

export const idempotencyKeyHeader: Readonly<Record<string, JsonSchema & { description: string }>> = {
  'Idempotency-Key': {
    type: 'string',
    minLength: 1,
    maxLength: limits.idempotencyKeyCharactersMax,
    description:
      'Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets ' +
      '422.',
  },
};

/** Sent if the whole response is a replay and this request stored nothing. */
export const idempotencyReplayed = { 'idempotency-replayed': 'true' };

/** Every answer repeats the request's key, so that the client notices if a proxy passes on the answer to another request. */
export function repeatedKey({ headers, routeOptions }: FastifyRequest): Record<string, string> {
  const key = headers['idempotency-key'];
  const takesKey = routeOptions.config.operation?.requestHeaders?.['Idempotency-Key'] !== undefined;
  // Node sends other characters in one of two encodings, so that the client could not compare them.
  return takesKey && typeof key === 'string' && /^[ -~]*$/.test(key) ? { 'idempotency-key': key } : {};
}

export function readIdempotencyKey(call: Call): string | undefined {
  const key = call.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length >= 1 && key.length <= limits.idempotencyKeyCharactersMax)
    // Visitors to a page must not be able to use or guess the keys of the organisation's own programs.
    return call.principal?.visitor === undefined ? key : browserKey(key);
  const message = `must be 1 to ${limits.idempotencyKeyCharactersMax} characters long`;
  throw invalidRequest({ field: 'Idempotency-Key', code: 'invalid_value', message });
}
