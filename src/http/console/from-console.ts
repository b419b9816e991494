// http/console/: serves the console's pages and its sign-in.

import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type ApiName, RequestError } from '../../errors.ts';

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
