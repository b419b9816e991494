import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { quotaRefusal } from '../admission/quota.ts';
import type { LimitHeaders } from '../admission/request-limits.ts';
import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import {
  authenticate,
  authenticateSession,
  bearerOf,
  type Principal,
  unauthorized,
} from '../keys/authenticate.ts';
import { lacksPermission, permits } from '../keys/permissions.ts';
import { type ActiveToken, authenticateOperator, findToken } from '../operator/admin-tokens.ts';
import type { Pool } from '../postgres/pool.ts';
import { resourceTypes } from '../registry/resources.ts';
import type { AdminParts } from './admin/parts.ts';
import { isFromConsole, refuseOtherPage } from './console/from-console.ts';
import { consoleCookie, operatorCookie } from './console/session-cookie.ts';
import { isPreflight, refuseVisitor } from './operation/browser-keys.ts';
import type { Operation, Parts } from './operation/operation.ts';
import { type Query, readQuery } from './operation/query.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation<never>;
    /** Set on the other methods of an address that browser keys may use: OPTIONS may be a preflight. */
    isForBrowsers?: boolean;
    /** Set on the routes that catch all other methods of an address: the methods it takes. */
    allow?: string;
  }
}

/** The result of passing the gate: who asks, and with which parameters. */
export interface Admitted {
  readonly principal: Principal | undefined;
  /** The name of the admin token. */
  readonly token?: string | undefined;
  readonly query: Query;
}

/** Called as soon as each is known, even if the request is refused later. */
export interface Seen {
  principal(principal: Principal): void;
  /** A page of this origin may read the answer. */
  origin(origin: string): void;
  limits(headers: LimitHeaders): void;
  /** What the organisation has used of its quotas. */
  quota(header: string): void;
}

/**
 * The checks before the body is read. Their order decides which of several failures is reported: HTTPS, key, what a
 * browser key may not do, request limit, address, method, permission, parameters, quota.
 */
export async function admit(request: FastifyRequest, parts: Parts, seen: Seen): Promise<Admitted> {
  const { config, requestLimits } = parts;
  refuseUnsound(request, config);
  if (isPreflight(request)) return { principal: undefined, query: {} };
  const { operation } = request.routeOptions.config;
  const { origin = '' } = request.headers;
  const onBrowserKey = (origins: readonly string[]) => {
    if (operation?.isForBrowsers && origins.includes(origin)) seen.origin(origin);
  };
  const principal = await principalFor(request, parts, onBrowserKey);
  // A batch counts as its interactions once they are read, and as one until then.
  const limited = operation?.permission === 'interactions:write' ? 'interactions' : 'requests';
  if (principal) {
    seen.principal(principal);
    const isVisitor = principal.visitor !== undefined;
    if (isVisitor) refuseVisitor(request, principal);
    // An address that does not exist costs the organisation nothing if a visitor asks for it.
    if (operation || !isVisitor) seen.limits(await requestLimits.count(limited, principal));
  }
  if (request.is404) refuseUnknownType(request);
  refuseUnknownAddress(request, config);
  refuseOtherMethod(request);
  if (operation?.permission && !permits(principal?.permissions ?? [], operation.permission)) {
    throw lacksPermission(operation.permission);
  }
  const query = queryOf(request);
  if (operation?.storesRecords && principal?.quota) applyQuota(request, principal, query, seen);
  return { principal, query };
}

/**
 * Refuses what would store something more. Whether a request with an `Idempotency-Key` would is not known yet: it may
 * repeat one that was stored.
 */
function applyQuota(
  { headers, routeOptions }: FastifyRequest,
  { quota, visitor }: Principal,
  query: Query,
  seen: Seen,
): void {
  if (quota && visitor === undefined) seen.quota(quota.header);
  const refusal = quotaRefusal(quota, visitor);
  const takesKey = routeOptions.config.operation?.requestHeaders?.['Idempotency-Key'] !== undefined;
  const mayRepeat = takesKey && headers['idempotency-key'] !== undefined;
  if (refusal && query.dry_run !== true && !mayRepeat) throw refusal;
}

function principalFor(
  request: FastifyRequest,
  parts: Parts,
  onBrowserKey: (origins: readonly string[]) => void,
): Promise<Principal | undefined> | undefined {
  const { headers, ip: address } = request;
  if (isOpen(request, parts.config)) return undefined;
  // Whatever key is sent along: the console has its cookie, and only the console.
  if (isFromConsole(request)) {
    const signedIn = authenticateSession(parts, consoleCookie.tokenIn(headers.cookie), address);
    return signedIn.then(({ principal }) => principal);
  }
  const credentials = { authorization: headers.authorization, address };
  return authenticate(parts.keys, parts.failedKeys, credentials, onBrowserKey);
}

/**
 * The same for the admin API. Wrong tokens are not counted: 256 random bits cannot be guessed, and a count by address would
 * lock out the right token behind the same proxy.
 */
export async function admitOperator(
  request: FastifyRequest,
  { config, pool }: AdminParts,
): Promise<Admitted> {
  refuseUnsound(request, config);
  const token = isOpen(request, config) ? undefined : await tokenFor(request, pool);
  refuseUnknownAddress(request, config);
  refuseOtherMethod(request);
  if (token?.role === 'read-only' && request.routeOptions.config.operation?.method !== 'GET')
    throw new RequestError('read_only_token');
  return { principal: undefined, token: token?.name, query: queryOf(request) };
}

async function tokenFor(request: FastifyRequest, pool: Pool): Promise<ActiveToken> {
  const { cookie, authorization } = request.headers;
  // As above: the cookie for the console, and the header for everybody else.
  if (isFromConsole(request)) return (await authenticateOperator(pool, operatorCookie.tokenIn(cookie))).token;
  const given = bearerOf(authorization);
  const token = given === undefined ? undefined : await findToken(pool, given);
  if (!token) throw unauthorized('admin_unauthorized');
  return token;
}

/** Checks that apply to every request, before authentication. */
function refuseUnsound(request: FastifyRequest, config: Config): void {
  // After a badly framed request, the rest of the connection cannot be trusted. If there are two keys, Node takes the
  // first and a proxy may take the second.
  if (!isWellFramed(request.raw) || countHeaders(request.raw.rawHeaders, 'authorization') > 1)
    throw new RequestError('malformed_request', { headers: { connection: 'close' } });
  // Health probes reach the process directly, not through the proxy.
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
 * Guards against request smuggling. Node's parser is stricter than most, but accepts unknown HTTP versions, and any
 * transfer codings as long as the last is `chunked`. A proxy that frames such a request differently could let one
 * request hide in another.
 */
function isWellFramed({ httpVersion, rawHeaders, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion !== '1.1')) return false;
  const hosts = countHeaders(rawHeaders, 'host');
  return httpVersion === '1.1' ? hosts === 1 : httpVersion === '1.0' && hosts <= 1;
}

/**
 * Names and values alternate in the raw headers. Node's parsed headers silently drop a second `Authorization` or
 * `Host`.
 */
function countHeaders(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) count++;
  }
  return count;
}

/** Whether it needs neither a key nor a session. Throws if a request to a console comes from another page. */
function isOpen(request: FastifyRequest, config: Config): boolean {
  const isForAll = isPublic(request.url, config);
  if (isFromConsole(request) || (isForAll && request.url.startsWith('/console'))) refuseOtherPage(request);
  return isForAll;
}

function isPublic(url: string, { apiReference, console: hasConsole }: Config): boolean {
  return (
    url.startsWith('/health/') ||
    // Its pages, and signing in. What it asks of the API has another address by now.
    (hasConsole && url.startsWith('/console') && /^\/console([/?]|$)/.test(url)) ||
    /^\/v1\/erasure-keys(\?|$)/.test(url) ||
    (apiReference && /^\/(\?|$|docs(\/|\?|$)|openapi\.json(\?|$))/.test(url))
  );
}

/** An address with a trailing slash is unknown, too: the router would read it as a record with an empty id. */
function refuseUnknownAddress({ is404, url, routeOptions, server }: FastifyRequest, config: Config): void {
  const [path = ''] = url.split('?', 1);
  const hasSlash = path.endsWith('/') && routeOptions.url !== path;
  if (!is404 && !hasSlash) return;
  const bare = path.slice(0, -1);
  // The message names the address only if it is ours, and never repeats what was sent. The router treats its argument
  // as a pattern, so only plain addresses are looked up.
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
