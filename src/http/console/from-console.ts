// http/console/: the pages of the consoles, and signing in.

import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type ApiName, RequestError } from '../../errors.ts';

/** Below this address the console finds the operations of the API. */
const apiPath = '/console/api';

/** The addresses there that lead to operations of each API. */
const operationPaths: Readonly<Record<ApiName, RegExp>> = {
  public: /^\/console\/api\/(v1|user-interactions)([/?]|$)/,
  admin: /^\/console\/api\/admin\/v1([/?]|$)/,
};

const fromConsole = new WeakSet<IncomingMessage>();

/**
 * The console uses the operations of the API, under another address and with a cookie instead of a key: the cookie's path keeps
 * it away from the API itself. Returns the address of the operation.
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
 * Only the console's own pages may change anything. The cookie is not sent with requests of other sites; this refuses those of
 * other hosts of the same site too.
 */
export function refuseOtherPage({ method, headers, host }: FastifyRequest): void {
  if (method === 'GET' || method === 'HEAD') return;
  const { origin = '' } = headers;
  if (!URL.canParse(origin) || new URL(origin).host !== host) throw new RequestError('other_page');
}
