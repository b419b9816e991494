import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../../test/fault/erasure-mixture/random.ts';

/** What can happen to a request on its way to the service and back. */
const faults = [
  'lost before',
  'lost after',
  'doubled',
  'doubled later',
  'delayed',
  'cut in the middle',
  'reset',
  'page instead',
  'page after',
  'empty object after',
  'empty after',
  'answer to another request',
  'limited until a date',
  'limited',
] as const;

export type Fault = (typeof faults)[number];

interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Forwards requests to several processes of the service, which have different limits, and makes mistakes. */
export class ChaosProxy {
  url = '';
  targets: readonly string[] = [];
  /** The share of requests with a fault. */
  rate = 0;
  allowed: readonly Fault[] = faults;
  /** Waits before each request is forwarded. */
  gate: Promise<unknown> = Promise.resolve();
  readonly seen = new Map<Fault | 'none', number>();
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #later = new Set<Promise<unknown>>();
  readonly #server = createServer((incoming, outgoing) => {
    this.#answer(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  #previous: Received | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Waits until every duplicate has been answered. */
  async settle(): Promise<void> {
    while (this.#later.size > 0) await Promise.all(this.#later);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#agent.destroy();
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const isFaulty = incoming.method === 'POST' && this.#random.chance(this.rate);
    const fault = isFaulty ? this.#random.pick(this.allowed) : undefined;
    this.seen.set(fault ?? 'none', (this.seen.get(fault ?? 'none') ?? 0) + 1);
    if (incoming.method === 'POST') await this.gate;
    if (fault === 'lost before') return void incoming.socket.destroy();
    if (fault === 'page instead') return page(outgoing, this.#random.pick([200, 502, 503, 504]));
    if (fault === 'limited') return page(outgoing, 429, { 'retry-after': '1' });
    if (fault === 'limited until a date')
      return page(outgoing, 429, { 'retry-after': new Date(Date.now() + 900).toUTCString() });
    if (fault === 'delayed') await sleep(this.#random.below(400));
    if (fault === 'doubled') this.#note(this.#forward(incoming, body));
    if (fault === 'doubled later') {
      const delayMs = this.#random.below(1_500);
      this.#note(sleep(delayMs).then(() => this.#forward(incoming, body)));
    }
    const received = await this.#note(this.#forward(incoming, body));
    this.#send(fault, received, incoming, outgoing);
  }

  #note<T>(work: Promise<T>): Promise<T> {
    const settled = work.catch(() => {}).finally(() => this.#later.delete(settled));
    this.#later.add(settled);
    return work;
  }

  #send(
    fault: Fault | undefined,
    { status, headers, body }: Received,
    { socket }: IncomingMessage,
    outgoing: ServerResponse,
  ): void {
    const previous = this.#previous;
    this.#previous = { status, headers, body };
    const { 'transfer-encoding': _, 'content-length': __, connection: ___, ...kept } = headers;
    const half = body.subarray(0, body.length >> 1);
    if (fault === 'lost after') socket.destroy();
    else if (fault === 'page after') page(outgoing, this.#random.pick([200, 403, 504]));
    else if (fault === 'empty object after')
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    else if (fault === 'empty after') outgoing.writeHead(status, { ...kept, 'content-length': 0 }).end();
    else if (fault === 'cut in the middle') outgoing.writeHead(status, kept).end(half);
    else if (fault === 'reset') {
      outgoing.writeHead(status, { ...kept, 'content-length': body.length }).write(half);
      setTimeout(() => socket.resetAndDestroy(), 10);
    } else if (fault === 'answer to another request' && previous && previous.body.length !== body.length)
      outgoing.writeHead(previous.status, { 'content-type': 'application/json' }).end(previous.body);
    else outgoing.writeHead(status, { ...kept, 'content-length': body.length }).end(body);
  }

  async #forward({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer): Promise<Received> {
    const { connection: _, ...kept } = headers;
    const target = this.#random.pick(this.targets);
    const onward = request(target + url, { method, headers: kept, agent: this.#agent });
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk);
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) };
  }
}

function page(outgoing: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  outgoing
    .writeHead(status, { 'content-type': 'text/html', ...headers })
    .end(`<html><body>${status} proxy</body></html>`);
}

/** Returns the faults without duplicates. */
export const withoutDuplicates = faults.filter((fault) => !fault.startsWith('doubled'));
export { faults as allFaults };
