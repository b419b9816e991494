import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

/** What the proxy does with a request. */
export type Fate =
  | 'pass'
  /** The client's connection is cut before the service receives the request. */
  | 'cut before'
  /** The service processes the request, but the client never gets the response. */
  | 'cut after'
  /** The response is cut off in the middle. */
  | 'cut within'
  | {
      readonly status: number;
      readonly retryAfter?: number | string;
      readonly body?: string;
      readonly type?: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly startedMs: number;
  endedMs?: number;
}

/**
 * Starts a proxy between a client and the service. The proxy uses real sockets and can fail like a network. Requests that open
 * and end runs pass unseen unless `seesRuns` is true, because most tests are about the requests between them.
 */
export async function startHttpProxy(
  targetUrl: string,
  fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>,
  { seesRuns = false } = {},
) {
  const seen: Seen[] = [];
  const proxy = { url: '', target: targetUrl, seen, close: async () => {} };
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk);
    } catch {
      // The client was killed or gave up while it was sending.
      return;
    }
    const bytes = Buffer.concat(chunks);
    const one: Seen = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.headers,
      body: String(incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes),
      startedMs: performance.now(),
    };
    if (!seesRuns && one.url.startsWith('/v1/runs'))
      return pass(proxy.target, incoming, bytes, outgoing, 'pass');
    seen.push(one);
    const fate = await fateOf(one, seen.length);
    if (typeof fate === 'object') {
      const after = fate.retryAfter === undefined ? {} : { 'retry-after': String(fate.retryAfter) };
      outgoing
        .writeHead(fate.status, { 'content-type': fate.type ?? 'text/plain', ...after, ...fate.headers })
        .end(fate.body ?? 'not now');
    } else if (fate === 'cut before') incoming.socket.destroy();
    else await pass(proxy.target, incoming, bytes, outgoing, fate);
    one.endedMs = performance.now();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  proxy.close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return proxy;
}

/**
 * Starts a proxy that can hold the requests of a run before the run is killed, so that the run cannot finish first on a slow
 * machine. The service never receives them.
 */
export async function startHoldingProxy(targetUrl: string) {
  let isHeld = false;
  const { url, close } = await startHttpProxy(targetUrl, async () => {
    if (!isHeld) return 'pass';
    while (isHeld) await sleep(5);
    return 'cut before';
  });
  const hold = () => {
    isHeld = true;
  };
  const release = () => {
    isHeld = false;
  };
  return { url, close, hold, release };
}

async function pass(
  target: string,
  incoming: IncomingMessage,
  bytes: Buffer,
  outgoing: ServerResponse,
  fate: Fate,
): Promise<void> {
  const { method, headers, url } = incoming;
  const onward = request(target + url, { ...(method && { method }), headers });
  // After a service was killed, a second error can follow the one that is awaited below.
  onward.on('error', () => {});
  onward.end(bytes);
  try {
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (fate === 'cut after') return void incoming.socket.destroy();
    const { 'transfer-encoding': _, connection: __, ...rest } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 0, { ...rest, 'content-length': body.length });
    if (fate === 'cut within') {
      outgoing.write(body.subarray(0, body.length / 2));
      // Give a client on a busy machine time to read the first half, because unread data is lost with the connection.
      setTimeout(() => incoming.socket.destroy(), 250);
    } else outgoing.end(body);
  } catch {
    // If the service is unavailable, the proxy cuts the client's connection.
    incoming.socket.destroy();
  }
}
