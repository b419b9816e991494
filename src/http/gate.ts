import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import { authenticate, bearerOf, type Principal, unauthorized } from '../keys/authenticate.ts';
import { hashKey } from '../keys/key-format.ts';
import { type Permission, permits } from '../keys/permissions.ts';
import type { LimitHeaders } from '../keys/request-limits.ts';
import { resourceTypes } from '../registry/resources.ts';
import type { AdminParts } from './admin/parts.ts';
import type { Operation, Parts } from './operation.ts';
import { type Query, readQuery } from './query.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation<never>;
    /** Set on the routes that stand for every method an address does not take: the ones it does. */
    allow?: string;
  }
}

/** Who asks, and what for, once a request has passed the gate. */
export interface Admitted {
  readonly principal: Principal | undefined;
  readonly query: Query;
}

/** What is told as soon as it is known, whether the request is admitted in the end or not. */
export interface Seen {
  principal(principal: Principal): void;
  limits(headers: LimitHeaders): void;
}

/**
 * The checks that come before a body is read, in the order that decides which of several failures is told: HTTPS, key,
 * request limit, address, method, permission, parameters.
 */
export async function admit(
  request: FastifyRequest,
  { config, keys, failedKeys, requestLimits }: Parts,
  seen: Seen,
): Promise<Admitted> {
  refuseUnsound(request, config);
  const credentials = { authorization: request.headers.authorization, address: request.ip };
  const principal = isPublic(request.url, config)
    ? undefined
    : await authenticate(keys, failedKeys, credentials);
  const { operation } = request.routeOptions.config;
  const limited = operation?.id === 'record-interaction' ? 'interactions' : 'requests';
  if (principal) {
    seen.principal(principal);
    seen.limits(await requestLimits.count(limited, principal));
  }
  if (request.is404) refuseUnknownType(request);
  refuseUnknownAddress(request, config);
  refuseOtherMethod(request);
  if (operation?.permission && !permits(principal?.permissions ?? [], operation.permission)) {
    throw lacksPermission(operation.permission);
  }
  return { principal, query: queryOf(request) };
}

/** The same for the admin API, where whoever has the token may do everything. */
export async function admitOperator(
  request: FastifyRequest,
  { config, admin, failedKeys }: AdminParts,
): Promise<Admitted> {
  refuseUnsound(request, config);
  if (!isPublic(request.url, config)) {
    const token = bearerOf(request.headers.authorization);
    if (token === undefined) throw unauthorized('admin_unauthorized');
    await failedKeys.refuseTooMany(request.ip);
    if (!timingSafeEqual(hashKey(token), hashKey(admin.token))) {
      await failedKeys.count(request.ip);
      throw unauthorized('admin_unauthorized');
    }
  }
  refuseUnknownAddress(request, config);
  refuseOtherMethod(request);
  return { principal: undefined, query: queryOf(request) };
}

/** What no request may be, whoever asks. */
function refuseUnsound(request: FastifyRequest, config: Config): void {
  // Whatever else comes on this connection was perhaps meant otherwise. Of two keys Node would take the first, and whoever
  // stands in front perhaps the second.
  if (!isWellFramed(request.raw) || countHeaders(request.raw.rawHeaders, 'authorization') > 1)
    throw new RequestError('malformed_request', { headers: { connection: 'close' } });
  // Whoever watches over the process asks it directly, not through the proxy.
  const probe = request.url.startsWith('/health/');
  if (config.trustedProxy.length > 0 && request.protocol !== 'https' && !probe) {
    throw new RequestError('https_required');
  }
}

function refuseOtherMethod({ routeOptions }: FastifyRequest): void {
  const { allow } = routeOptions.config;
  if (allow) throw new RequestError('method_not_allowed', { headers: { allow } });
}

function queryOf({ routeOptions, url }: FastifyRequest): Query {
  const { operation } = routeOptions.config;
  return operation ? readQuery(operation.query ?? {}, url) : {};
}

/**
 * The parser is stricter than most, but takes versions that there are not, and codings it does not undo as long as the
 * last is `chunked`. Where whoever stands in front reads such a request in another way, one could be hidden in another.
 */
function isWellFramed({ httpVersion, rawHeaders, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion !== '1.1')) return false;
  const hosts = countHeaders(rawHeaders, 'host');
  return httpVersion === '1.1' ? hosts === 1 : httpVersion === '1.0' && hosts <= 1;
}

/** Names and values take turns in the raw headers; Node's own reading of them drops a second one without a word. */
function countHeaders(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) count++;
  }
  return count;
}

function isPublic(url: string, { apiReference }: Config): boolean {
  return (
    url.startsWith('/health/') || (apiReference && /^\/(\?|$|docs(\/|\?|$)|openapi\.json(\?|$))/.test(url))
  );
}

function lacksPermission(permission: Permission): RequestError {
  const message = `The API key lacks the permission ${permission}; ask the operator for a key that has it.`;
  return new RequestError('missing_permission', { permission, message });
}

/** One with a slash at its end is unknown, too: the router would take it for that of a record with an empty id. */
function refuseUnknownAddress({ is404, url, routeOptions, server }: FastifyRequest, config: Config): void {
  const [path = ''] = url.split('?', 1);
  const hasSlash = path.endsWith('/') && routeOptions.url !== path;
  if (!is404 && !hasSlash) return;
  const bare = path.slice(0, -1);
  // Named only if it is one of ours: what was sent is not repeated. The router takes what it is asked for as a pattern, so
  // it is asked for plain addresses alone.
  if (hasSlash && /^[\w/-]+$/.test(bare) && server.hasRoute({ method: 'GET', url: bare })) {
    const message = `There is nothing at this address; use ${bare}, without the slash at its end.`;
    throw new RequestError('not_found', { message });
  }
  const message = 'There is nothing at this address; the API reference, /docs, lists what there is.';
  throw new RequestError('not_found', config.apiReference ? { message } : {});
}

function refuseUnknownType({ url }: FastifyRequest): void {
  const [, type] = /^\/v1\/data\/([^/?]*)/.exec(url) ?? [];
  if (type === undefined || resourceTypes.some((known) => known === type)) return;
  const message = `There is no such record type; the types are ${resourceTypes.join(', ')}.`;
  throw new RequestError('unknown_type', { message });
}
