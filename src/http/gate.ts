import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { type Quota, quotaRefusal } from '../admission/quota.ts';
import type { Config } from '../config.ts';
import { type ApiName, invalidRequest, RequestError } from '../errors.ts';
import {
  authenticate,
  authenticateSession,
  bearerOf,
  type Principal,
  unauthorized,
} from '../keys/authenticate.ts';
import { lacksPermission, type Permission, permits, permitsUploads } from '../keys/permissions.ts';
import { limits } from '../limits.ts';
import { type ActiveToken, authenticateOperator, findToken } from '../operator/admin-tokens.ts';
import type { Pool } from '../postgres/pool.ts';
import type { RecordError } from '../receipts/batch-answer.ts';
import { resourceTypes } from '../registry/resources.ts';
import type { Warning } from '../registry/warnings.ts';
import type { AdminParts } from './admin/parts.ts';
import { consoleCookie, operatorCookie } from './console/session-cookie.ts';
import type { Answer, Call, Operation, Parts } from './operation/operation.ts';
import { type Query, readQuery } from './operation/operation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation<never>;
    /** Browser keys can be used here, so OPTIONS may be a preflight. Set on the routes for a path's other methods. */
    isForBrowsers?: boolean;
    /** The methods that the path allows. Set on the same routes. */
    allow?: string;
  }
}

/** What the gate found out, even if it refuses the request. */
export interface Admission {
  principal?: Principal;
  token?: string;
  query: Query;
  /** For the response, whatever it is. */
  readonly headers: Record<string, string>;
  /** A quota is exceeded. Only a request that repeats one that is already stored may pass, which its handler finds out. */
  overQuota?: RequestError | undefined;
  /** Thrown once the rest has been noted. */
  refusal?: unknown;
}

/**
 * Runs the checks that come before the body is read. If several of them would fail, their order decides which failure is
 * reported: HTTPS, key, browser key restrictions, request limit, path, method, permission, clock, parameters, quota.
 */
export function admit(request: FastifyRequest, parts: Parts): Promise<Admission> {
  return noting(async (admission) => {
    const { config, requestLimits } = parts;
    refuseUnsound(request, config);
    if (isPreflight(request)) return;
    const { operation } = request.routeOptions.config;
    const principal = await principalFor(request, parts, admission);
    // A batch counts as one interaction until its body has been read, and then as the number of interactions in it.
    const limited = operation?.permission === 'interactions:write' ? 'interactions' : 'requests';
    if (principal) {
      admission.principal = principal;
      const isVisitor = principal.visitor !== undefined;
      if (isVisitor) refuseVisitor(request, principal);
      // A visitor's request for an unknown path does not count against the organisation's limits.
      if (operation || !isVisitor)
        Object.assign(admission.headers, await requestLimits.count(limited, principal));
    }
    if (request.is404) refuseUnknownType(request);
    refuseUnknownAddress(request, config);
    refuseOtherMethod(request);
    if (operation?.permission) refuseWithout(operation, operation.permission, principal);
    if (operation?.permission) refuseWrongClock(operation, parts);
    admission.query = queryOf(request);
    if (operation?.storesRecords && principal?.quota) applyQuota(request, principal.quota, admission);
  });
}

function refuseWithout(
  { isForUploaders }: Operation<never>,
  needed: Permission,
  principal: Principal | undefined,
): void {
  const granted = principal?.permissions ?? [];
  if (!permits(granted, needed) && !(isForUploaders && permitsUploads(granted)))
    throw lacksPermission(needed);
}

async function noting(check: (admission: Admission) => Promise<void>): Promise<Admission> {
  const admission: Admission = { query: {}, headers: {} };
  try {
    await check(admission);
  } catch (error) {
    admission.refusal = error;
  }
  return admission;
}

/** What a process with a wrong clock stores would be sorted, kept and deleted wrongly, and its keys would expire. */
function refuseWrongClock({ method }: Operation<never>, { server }: Pick<Parts, 'server'>): void {
  const error = method === 'GET' ? undefined : server.wrongClock();
  if (error) throw error;
}

/** Dry runs are exempt. A request with an `Idempotency-Key` may repeat one that is already stored. */
function applyQuota({ headers, routeOptions }: FastifyRequest, quota: Quota, admission: Admission): void {
  const { principal, query } = admission;
  if (principal?.visitor === undefined) admission.headers['intake-quota'] = quota.header;
  const refusal = query.dry_run === true ? undefined : quotaRefusal(quota, principal?.visitor);
  const takesKey = routeOptions.config.operation?.requestHeaders?.['Idempotency-Key'] !== undefined;
  const mayRepeat = takesKey && headers['idempotency-key'] !== undefined;
  if (refusal && !mayRepeat) throw refusal;
  admission.overQuota = refusal;
}

function principalFor(
  request: FastifyRequest,
  parts: Parts,
  admission: Admission,
): Promise<Principal | undefined> | undefined {
  const { headers, ip: address, routeOptions } = request;
  if (isOpen(request, parts.config)) return undefined;
  // Console requests are authenticated by their cookie, even if they contain a key, and all others only by key.
  if (isFromConsole(request)) {
    const signedIn = authenticateSession(parts, sessionIn(request, consoleCookie), address);
    return signedIn.then(({ principal }) => {
      refuseOtherSession(request, principal.keyId);
      return principal;
    });
  }
  const credentials = { authorization: headers.authorization, address };
  const { origin = '' } = headers;
  return authenticate(parts.keys, parts.failedKeys, credentials, (origins) => {
    const mayRead = routeOptions.config.operation?.isForBrowsers && origins.includes(origin);
    if (mayRead) Object.assign(admission.headers, corsHeaders(origin));
  });
}

/**
 * Wrong tokens are not counted: a token has 256 random bits and cannot be guessed, and counting by IP address would lock
 * out valid tokens behind the same proxy.
 */
export function admitOperator(request: FastifyRequest, parts: AdminParts): Promise<Admission> {
  return noting(async (admission) => {
    const { config, pool } = parts;
    refuseUnsound(request, config);
    const token = isOpen(request, config) ? undefined : await tokenFor(request, pool);
    refuseUnknownAddress(request, config);
    refuseOtherMethod(request);
    const { operation } = request.routeOptions.config;
    if (token?.role === 'read-only' && operation?.method !== 'GET') throw new RequestError('read_only_token');
    if (token && operation) refuseWrongClock(operation, parts);
    if (token) admission.token = token.name;
    admission.query = queryOf(request);
  });
}

async function tokenFor(request: FastifyRequest, pool: Pool): Promise<ActiveToken> {
  if (isFromConsole(request)) {
    const { token } = await authenticateOperator(pool, sessionIn(request, operatorCookie));
    refuseOtherSession(request, token.name);
    return token;
  }
  const given = bearerOf(request.headers.authorization);
  const token = given === undefined ? undefined : await findToken(pool, given);
  if (!token) throw unauthorized('admin_unauthorized');
  return token;
}

function sessionIn({ headers, protocol }: FastifyRequest, cookie: typeof consoleCookie): string | undefined {
  return cookie.tokenIn(headers.cookie, protocol === 'https');
}

/** These checks come before authentication. */
function refuseUnsound(request: FastifyRequest, config: Config): void {
  // After a badly framed request, the rest of the connection cannot be trusted. If a request contains two keys, Node uses
  // the first one, but a proxy may use the second.
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
 * Guards against request smuggling. Node's parser is stricter than most, but it accepts unknown HTTP versions, and it
 * accepts any transfer codings as long as the last one is `chunked`. If a proxy framed such a request differently, one
 * request could hide inside another.
 */
function isWellFramed({ httpVersion, rawHeaders, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion !== '1.1')) return false;
  const hosts = countHeaders(rawHeaders, 'host');
  return httpVersion === '1.1' ? hosts === 1 : httpVersion === '1.0' && hosts <= 1;
}

/** Node's parsed headers silently drop a second `Authorization` or `Host`. In the raw ones, names and values alternate. */
function countHeaders(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) count++;
  }
  return count;
}

/** Throws if a console request that could change something comes from another origin. */
function isOpen(request: FastifyRequest, config: Config): boolean {
  const isForAll = isPublic(request.url, config);
  if (isFromConsole(request) || (isForAll && request.url.startsWith('/console'))) refuseOtherPage(request);
  return isForAll;
}

function isPublic(url: string, { apiReference, console: hasConsole }: Config): boolean {
  return (
    url.startsWith('/health/') ||
    // The console's pages and its sign-in. Its API requests have already been rewritten to another path.
    (hasConsole && /^\/console([/?]|$)/.test(url)) ||
    /^\/v1\/erasure-keys(\?|$)/.test(url) ||
    (apiReference && /^\/(\?|$|docs(\/|\?|$)|openapi\.json(\?|$))/.test(url))
  );
}

/** A trailing slash makes a path unknown: the router would read it as a record with an empty id. */
function refuseUnknownAddress({ is404, url, routeOptions, server }: FastifyRequest, config: Config): void {
  const [path = ''] = url.split('?', 1);
  const hasSlash = path.endsWith('/') && routeOptions.url !== path;
  if (!is404 && !hasSlash) return;
  const bare = path.slice(0, -1);
  // The message contains the path only if it is one of ours, so it never repeats the client's input. The router treats
  // its argument as a pattern, so only plain paths are looked up.
  if (hasSlash && /^[\w/-]+$/.test(bare) && server.hasRoute({ method: 'GET', url: bare })) {
    const message = `There is nothing at this address; use ${bare}, without the slash at its end.`;
    throw new RequestError('not_found', { message });
  }
  const message = 'There is nothing at this address; the API reference at /docs lists all operations.';
  throw new RequestError('not_found', config.apiReference ? { message } : {});
}

function refuseUnknownType({ url }: FastifyRequest): void {
  const [, type] = /^\/v1\/data\/([^/?]*)/.exec(url) ?? [];
  if (type === undefined || resourceTypes.some((known) => known === type)) return;
  const message = `There is no such record type; the types are ${resourceTypes.join(', ')}.`;
  throw new RequestError('unknown_type', { message });
}

const apiPath = '/console/api';

const operationPaths: Readonly<Record<ApiName, RegExp>> = {
  public: /^\/(v1|user-interactions)([/?]|$)/,
  admin: /^\/admin\/v1([/?]|$)/,
};

/** Each request of a page names the key or token that was signed in when the page was opened. */
const signedInAs = /^\/as\/([\w-]{1,64})(?=\/)/;

const fromConsole = new WeakMap<IncomingMessage, string | undefined>();

/**
 * Removes the console's prefix from the URL of an API request, and remembers that the request came from the console. Only
 * such requests are authenticated by the cookie.
 */
export function rewriteConsoleUrl(api: ApiName, request: IncomingMessage, url: string): string {
  if (!url.startsWith(`${apiPath}/`)) return url;
  const called = url.slice(apiPath.length);
  const [named = '', name] = signedInAs.exec(called) ?? [];
  const operation = called.slice(named.length);
  if (!operationPaths[api].test(operation)) return url;
  fromConsole.set(request, name);
  return operation;
}

export function isFromConsole({ raw }: Pick<FastifyRequest, 'raw'>): boolean {
  return fromConsole.has(raw);
}

/** Browsers do not send the cookie with cross-site requests, so this matters only for other hosts of the same site. */
export function refuseOtherPage({ method, headers, host, protocol }: FastifyRequest): void {
  if (method === 'GET' || method === 'HEAD') return;
  const own = URL.parse(`${protocol}://${host}`);
  if (own === null || headers.origin !== own.origin) throw new RequestError('other_page');
}

/** The page would otherwise change one organisation while it shows another. */
export function refuseOtherSession({ raw }: Pick<FastifyRequest, 'raw'>, signedIn: string): void {
  const named = fromConsole.get(raw);
  if (named !== undefined && named !== signedIn) throw new RequestError('other_session');
}

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

/** A dry run would reveal which references exist, and runs belong to the organisation's own programs. */
export function refuseForVisitors({ query }: Call): void {
  const field = ['dry_run', 'run_id', 'file', 'first_record'].find(
    (name) => (query[name] ?? false) !== false,
  );
  if (field === undefined) return;
  const message = 'cannot be used with a browser key; use another key';
  throw invalidRequest({ field, code: 'not_combinable', message });
}
