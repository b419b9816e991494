import { type Agent, type IncomingHttpHeaders, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';

/** One request over a connection that the caller chooses, for tests that send thousands and time them. */
export interface Exchange {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly ms: number;
  /** Whether it went over a connection that was open before. */
  readonly reused: boolean;
}

export interface Asked {
  readonly agent?: Agent | false;
  readonly key?: string;
  /** Sent as JSON, by POST; without it the request is a GET, unless it says otherwise. */
  readonly body?: unknown;
  readonly method?: 'POST';
  readonly headers?: Record<string, string>;
  readonly ca?: readonly Buffer[];
}

/** Rejects where the connection fails before the answer is whole. */
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
