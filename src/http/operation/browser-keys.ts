import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { invalidRequest, RequestError } from '../../errors.ts';
import type { Principal } from '../../keys/authenticate.ts';
import { limits } from '../../limits.ts';
import type { RecordError } from '../../receipts/batch-answer.ts';
import type { Warning } from '../../registry/warnings.ts';
import type { Answer, Call } from './operation.ts';

/**
 * Browser keys are embedded in web pages and are therefore public. They can only record interactions, and only from pages
 * of their allowed origins. Responses to requests with browser keys do not reveal which records are stored or who was erased.
 */

/** A preflight carries no key, so every origin gets the same response. The actual request decides what a page may read. */
export const preflightHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type, content-encoding, idempotency-key',
  'access-control-max-age': String(limits.preflightSeconds),
};

export function isPreflight({ method, headers, routeOptions }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    routeOptions.config.isForBrowsers === true &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

export function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers':
      'Retry-After, X-Request-Id, RateLimit, RateLimit-Policy, Idempotency-Key',
  };
}

/** Called before the request counts against the organisation's limits. */
export function refuseVisitor(
  { headers, routeOptions }: FastifyRequest,
  { browserOrigins }: Principal,
): void {
  const { operation } = routeOptions.config;
  if (operation?.permission && !operation.isForBrowsers) {
    const { permission } = operation;
    const message = 'A browser key only records interactions; use another key, and keep it out of web pages.';
    throw new RequestError('missing_permission', { permission, message });
  }
  if (!browserOrigins?.includes(headers.origin ?? '')) throw new RequestError('origin_not_allowed');
}

export interface Accepted {
  readonly received: number;
  /** Errors that were found by checking only the records themselves, without stored data. */
  readonly errors: readonly RecordError[];
  readonly warnings: readonly Warning[];
}

/** Reveals nothing about references: an interaction that is stored and one that is kept as a rejection get the same. */
export function acceptedAnswer({ received, errors, warnings }: Accepted): Answer {
  const accepted = received - new Set(errors.map(({ index }) => index)).size;
  return { status: accepted > 0 ? 202 : 400, body: { received, accepted, errors, warnings } };
}

/** Rounds the time up to a multiple of an interval, so that it does not reveal whether a reference is missing. */
export async function inSteps<T>(work: () => Promise<T>): Promise<T> {
  const beganMs = performance.now();
  try {
    return await work();
  } finally {
    const stepMs = limits.browserAnswerStepMs;
    const elapsedMs = performance.now() - beganMs;
    await sleep(Math.ceil(elapsedMs / stepMs) * stepMs - elapsedMs);
  }
}

/** A dry run would reveal which references exist. */
export function refuseDryRun({ query }: Call): void {
  if (query.dry_run !== true) return;
  const message = 'cannot be used with a browser key; use another key';
  throw invalidRequest({ field: 'dry_run', code: 'not_combinable', message });
}
