import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer = (outgoing: ServerResponse, incoming: IncomingMessage) => void;

/** Starts a server that gives every request the same response, once the whole request has arrived. */
export async function startHostileServer(answer: Answer) {
  const seen: IncomingMessage['headers'][] = [];
  const server = createServer((incoming, outgoing) => {
    seen.push(incoming.headers);
    incoming.resume().on('end', () => answer(outgoing, incoming));
    outgoing.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (outgoing) =>
    void outgoing
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body));
}

/** Sends the chunk over and over, as fast as the client reads it. */
export function endless(contentType: string, piece: string, status = 200): Answer {
  return (outgoing) => {
    outgoing.writeHead(status, { 'content-type': contentType });
    const send = () => {
      while (!outgoing.destroyed && outgoing.write(piece));
    };
    outgoing.on('drain', send);
    send();
  };
}
