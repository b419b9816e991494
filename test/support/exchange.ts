import { type Agent, type IncomingHttpHeaders, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';

/** The response to a request on a connection that the caller chooses, for tests that send and time thousands of requests. */
export interface Exchange {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly ms: number;
  /** Whether the connection was already open. */
  readonly reused: boolean;
}

export interface Asked {
  readonly agent?: Agent | false;
  readonly key?: string;
  /** A body that is sent as JSON. The default method is POST with a body, and GET without one. */
  readonly body?: unknown;
  readonly method?: 'POST';
  readonly headers?: Record<string, string>;
  readonly ca?: readonly Buffer[];
}

/** Sends a request. Rejects if the connection fails before the response is complete. */
export function exchange(url: string, asked: Asked = {}): Promise<Exchange> {
  const { agent, key, body, ca } = asked;
  const began = performance.now();
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(text !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }),
    ...asked.headers,
  };
  const options = {
    method: asked.method ?? (text === undefined ? 'GET' : 'POST'),
    headers,
    ...(agent !== undefined && { agent }),
    ...(ca && { ca: [...ca] }),
  };
  return new Promise((resolve, reject) => {
    const sent = (url.startsWith('https:') ? secureRequest : plainRequest)(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
          ms: performance.now() - began,
          reused: sent.reusedSocket,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(text);
  });
}
