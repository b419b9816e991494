// http/console/: serves the console's pages and its sign-in.

import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type ApiName, RequestError } from '../../errors.ts';

/** The console calls the API's operations below this path. */
const apiPath = '/console/api';

/** For each API, the paths below `apiPath` that map to operations. */
const operationPaths: Readonly<Record<ApiName, RegExp>> = {
  public: /^\/console\/api\/(v1|user-interactions)([/?]|$)/,
  admin: /^\/console\/api\/admin\/v1([/?]|$)/,
};

const fromConsole = new WeakSet<IncomingMessage>();

/**
 * Returns the URL of the operation that a console request calls. The console uses the API's operations under a different
 * path and with a cookie instead of a key. The cookie is limited to that path, so browsers do not send it to the API
 * itself.
 */
export function withoutConsole(api: ApiName, request: IncomingMessage, url: string): string {
  if (!url.startsWith(apiPath) || !operationPaths[api].test(url)) return url;
  fromConsole.add(request);
  return url.slice(apiPath.length);
}

export function isFromConsole({ raw }: Pick<FastifyRequest, 'raw'>): boolean {
  return fromConsole.has(raw);
}

/**
 * Throws if a request that could change something does not come from one of the console's own pages. Browsers do not send
 * the cookie with cross-site requests, so this check matters only for requests from other hosts on the same site.
 */
export function refuseOtherPage({ method, headers, host }: FastifyRequest): void {
  if (method === 'GET' || method === 'HEAD') return;
  const { origin = '' } = headers;
  if (!URL.canParse(origin) || new URL(origin).host !== host) throw new RequestError('other_page');
}
