import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A load generator that uses little of the two cores that it shares with the service. Requests are bytes that are built in
 * advance, and only the status and length of a response are read.
 */
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

export interface Connection {
  /** Sends a request and resolves to the complete response. Only one request may be pending. */
  send(request: Uint8Array): Promise<Answer>;
  close(): void;
}

const answerTimeoutMs = 120_000;
const headersEnd = Buffer.from('\r\n\r\n');

/** Returns the bytes of a complete request. */
export function requestOf(path: string, key: string, body: Buffer, more = ''): Buffer {
  const headers =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n${more}` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(headers, 'latin1'), body]);
}

export async function openConnection(port: number): Promise<Connection> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  let pending: PromiseWithResolvers<Answer> | undefined;
  let received: Buffer | undefined;
  let whole = Number.POSITIVE_INFINITY;
  let bodyStart = 0;
  const fail = (error: Error) => {
    pending?.reject(error);
    pending = undefined;
  };
  const take = (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    if (whole === Number.POSITIVE_INFINITY) {
      const end = received.indexOf(headersEnd);
      if (end === -1) return;
      bodyStart = end + headersEnd.length;
      whole = bodyStart + contentLength(received.toString('latin1', 0, end));
    }
    if (received.length < whole) return;
    const answer = {
      status: Number(received.toString('latin1', 9, 12)),
      body: received.subarray(bodyStart, whole),
    };
    received = undefined;
    whole = Number.POSITIVE_INFINITY;
    const answered = pending;
    pending = undefined;
    answered?.resolve(answer);
  };
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  socket.setTimeout(answerTimeoutMs, () => socket.destroy(new Error('no answer within two minutes')));
  socket.on('data', (chunk: Buffer) => {
    try {
      take(chunk);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the service closed the connection')));
  return {
    send(request) {
      pending = Promise.withResolvers<Answer>();
      socket.write(request);
      return pending.promise;
    },
    close: () => socket.destroy(),
  };
}

function contentLength(headers: string): number {
  const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
  if (length === undefined) throw new Error(`an answer without a content-length: ${headers}`);
  return Number(length);
}

/** Opens the connections for a measurement before its clock starts. */
export async function withConnections<T>(
  port: number,
  count: number,
  measure: (connections: readonly Connection[]) => Promise<T>,
): Promise<T> {
  const connections = await Promise.all(Array.from({ length: count }, () => openConnection(port)));
  try {
    return await measure(connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

export interface Load {
  readonly answers: number;
  readonly seconds: number;
  /** The latencies, in the order in which the responses arrived. */
  readonly latenciesMs: readonly number[];
}

type OnAnswer = (answer: Answer) => void;

/** Sends requests in a closed loop: each connection sends its next request once the previous one is answered. */
export async function sendInTurn(
  connections: readonly Connection[],
  next: () => Uint8Array | undefined,
  onAnswer: OnAnswer,
): Promise<Load> {
  const latenciesMs: number[] = [];
  const start = performance.now();
  const work = async (connection: Connection) => {
    for (let request = next(); request !== undefined; request = next()) {
      const sent = performance.now();
      const answer = await connection.send(request);
      latenciesMs.push(performance.now() - sent);
      onAnswer(answer);
    }
  };
  await Promise.all(connections.map(work));
  return { answers: latenciesMs.length, seconds: (performance.now() - start) / 1_000, latenciesMs };
}

/** Returns a function that returns the requests in order, starting over at the end, until the time is up. */
export function cycleFor(requests: readonly Uint8Array[], seconds: number): () => Uint8Array | undefined {
  const until = performance.now() + seconds * 1_000;
  let at = 0;
  return () => (performance.now() < until ? requests[at++ % requests.length] : undefined);
}

interface Waiting {
  readonly request: Uint8Array;
  readonly since: number;
}

/**
 * Sends requests in an open loop: they are sent at a fixed rate whether or not earlier ones are answered, as with many
 * users. If every connection is busy, a request waits, and the wait is part of its latency.
 */
export async function sendAtRate(
  connections: readonly Connection[],
  requests: readonly Uint8Array[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
  onAnswer: OnAnswer,
): Promise<Load> {
  const latenciesMs: number[] = [];
  const free = [...connections];
  const waiting: Waiting[] = [];
  const running = new Set<Promise<void>>();
  let failure: unknown;
  const serve = async (connection: Connection, first: Waiting) => {
    for (let item: Waiting | undefined = first; item !== undefined; item = waiting.shift()) {
      const answer = await connection.send(item.request);
      latenciesMs.push(performance.now() - item.since);
      onAnswer(answer);
    }
    free.push(connection);
  };
  const start = (connection: Connection, item: Waiting) => {
    const served = serve(connection, item)
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => running.delete(served));
    running.add(served);
  };
  const began = performance.now();
  const total = Math.round(perSecond * seconds);
  for (let sent = 0; sent < total && failure === undefined; ) {
    const now = performance.now();
    const due = Math.min(total, Math.floor(((now - began) / 1_000) * perSecond) + 1);
    for (; sent < due; sent++) {
      const item = { request: requests[sent % requests.length] as Uint8Array, since: now };
      const connection = free.pop();
      if (connection) start(connection, item);
      else waiting.push(item);
    }
    await sleep(1);
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
  return { answers: latenciesMs.length, seconds: (performance.now() - began) / 1_000, latenciesMs };
}
