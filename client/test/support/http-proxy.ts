import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** What becomes of a request on its way. */
export type Fate =
  | 'pass'
  /** The client's connection ends before the service hears of it. */
  | 'cut before'
  /** The service does its work and the client never learns of it. */
  | 'cut after'
  /** The answer begins and breaks off. */
  | 'cut within'
  | { readonly status: number; readonly retryAfter?: number; readonly body?: string };

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly startedMs: number;
  endedMs?: number;
}

/** Stands between a client and the service, on real sockets, and fails as networks do. */
export async function startHttpProxy(
  targetUrl: string,
  fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>,
) {
  const seen: Seen[] = [];
  const proxy = { url: '', target: targetUrl, seen, close: async () => {} };
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const one: Seen = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.headers,
      body: String(incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes),
      startedMs: performance.now(),
    };
    seen.push(one);
    const fate = await fateOf(one, seen.length);
    if (typeof fate === 'object') {
      const after = fate.retryAfter === undefined ? {} : { 'retry-after': String(fate.retryAfter) };
      outgoing.writeHead(fate.status, { 'content-type': 'text/plain', ...after }).end(fate.body ?? 'not now');
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

async function pass(
  target: string,
  incoming: IncomingMessage,
  bytes: Buffer,
  outgoing: ServerResponse,
  fate: Fate,
): Promise<void> {
  const { method, headers, url } = incoming;
  const onward = request(target + url, { ...(method && { method }), headers });
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
      // Time for a client on a busy machine to read the half: what it has not read is lost with the connection.
      setTimeout(() => incoming.socket.destroy(), 250);
    } else outgoing.end(body);
  } catch {
    // The service is away: so is its proxy.
    incoming.socket.destroy();
  }
}
