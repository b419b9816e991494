// http/console/: the pages of the console, and signing in.

import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../../errors.ts';

/** Below this address the console finds the operations of the API. */
const apiPath = '/console/api';

const fromConsole = new WeakSet<IncomingMessage>();

/**
 * The console uses the operations of the API, under another address and with a cookie instead of a key: the cookie's path keeps
 * it away from the API itself. Returns the address of the operation.
 */
export function withoutConsole(request: IncomingMessage, url: string): string {
  if (!url.startsWith(apiPath) || !/^\/console\/api\/(v1|user-interactions)([/?]|$)/.test(url)) return url;
  fromConsole.add(request);
  return url.slice(apiPath.length);
}

export function isFromConsole({ raw }: Pick<FastifyRequest, 'raw'>): boolean {
  return fromConsole.has(raw);
}

export const cookieName = 'intake_console';

/** The session's token among the cookies of a request. */
export function sessionToken(cookie: string | undefined): string | undefined {
  const prefix = `${cookieName}=`;
  const found = (cookie ?? '').split(';').find((pair) => pair.trim().startsWith(prefix));
  return found?.trim().slice(prefix.length);
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
