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
  'gateway error instead',
  'gateway error after',
  'empty object after',
  'empty after',
  'answer to another request',
  'limited until a date',
  'limited',
] as const;

export type Fault = (typeof faults)[number];
/** What a proxy counts: faults, requests without one, and faults of requests that only read. */
export type Seen = Fault | 'none' | 'read disturbed';

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
  /** If set, all requests go to this process, without faults. */
  only: string | undefined;
  /** Waits before each request is forwarded. */
  gate: Promise<unknown> = Promise.resolve();
  readonly seen = new Map<Seen, number>();
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #later = new Set<Promise<unknown>>();
  readonly #server = createServer((incoming, outgoing) => {
    this.#note(this.#answer(incoming, outgoing)).catch(() => incoming.socket.destroy());
  });
  /** The last answers of the service to requests with an Idempotency-Key. */
  readonly #answers: Received[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Waits until every request has been answered, also duplicates and those of clients that were killed. */
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
    const isRead = incoming.method !== 'POST';
    const isFaulty = this.only === undefined && this.#random.chance(this.rate);
    const chosen = isFaulty ? this.#random.pick(this.allowed) : undefined;
    const other = chosen === 'answer to another request' ? this.#answerToOther(incoming) : undefined;
    // If no answer can be swapped, the right one is sent.
    const fault = chosen === 'answer to another request' && !other ? undefined : chosen;
    this.#count(fault ?? 'none');
    if (isRead && fault) this.#count('read disturbed');
    if (!isRead) await this.gate;
    if (fault === 'lost before') return void incoming.socket.destroy();
    if (fault === 'page instead') return page(outgoing, this.#random.pick([200, 413, 502, 503, 504]));
    if (fault === 'gateway error instead')
      return gatewayError(outgoing, this.#random.pick([403, 413, 429, 502, 503, 504]));
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
    if (received.headers['idempotency-key'] !== undefined) this.#answers.push(received);
    if (this.#answers.length > answersKept) this.#answers.shift();
    this.#send(fault, other ?? received, incoming, outgoing);
  }

  #count(what: Seen): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  /**
   * Returns the answer to a request with another Idempotency-Key, which the answer repeats. Without that header, the client
   * could not notice that answers about as many records are swapped.
   */
  #answerToOther({ headers }: IncomingMessage): Received | undefined {
    const others = this.#answers.filter(
      (answer) => answer.headers['idempotency-key'] !== headers['idempotency-key'],
    );
    return others.length === 0 ? undefined : this.#random.pick(others);
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
    const { 'transfer-encoding': _, 'content-length': __, connection: ___, ...kept } = headers;
    const half = body.subarray(0, body.length >> 1);
    if (fault === 'lost after') socket.destroy();
    else if (fault === 'page after') page(outgoing, this.#random.pick([200, 403, 413, 504]));
    else if (fault === 'gateway error after')
      gatewayError(outgoing, this.#random.pick([400, 403, 413, 500, 504]));
    else if (fault === 'empty object after')
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    else if (fault === 'empty after') outgoing.writeHead(status, { ...kept, 'content-length': 0 }).end();
    else if (fault === 'cut in the middle') outgoing.writeHead(status, kept).end(half);
    else if (fault === 'reset') {
      outgoing.writeHead(status, { ...kept, 'content-length': body.length }).write(half);
      setTimeout(() => socket.resetAndDestroy(), 10);
    } else outgoing.writeHead(status, { ...kept, 'content-length': body.length }).end(body);
  }

  async #forward({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer): Promise<Received> {
    const { connection: _, ...kept } = headers;
    const target = this.only ?? this.#random.pick(this.targets);
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

/** Answers with a JSON error that has the form of the service's errors, but none of its codes. */
function gatewayError(outgoing: ServerResponse, status: number): void {
  outgoing
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ code: `gateway_${status}`, message: 'The gateway refused the request.' }));
}

const answersKept = 8;

/** Returns the faults without duplicates. */
export const withoutDuplicates = faults.filter((fault) => !fault.startsWith('doubled'));
export { faults as allFaults };
