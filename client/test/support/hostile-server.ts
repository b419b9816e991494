import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer = (outgoing: ServerResponse, incoming: IncomingMessage) => void;

/**
 * Starts a server that gives every request the same response, once the whole request has arrived. Unless `seesRuns` is true, it
 * knows no runs, like a service of an older release, because most tests are about the requests that can name one.
 */
export async function startHostileServer(answer: Answer, { seesRuns = false } = {}) {
  const seen: IncomingMessage['headers'][] = [];
  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => {});
    if (!seesRuns && incoming.url?.startsWith('/v1/runs'))
      return void incoming.resume().on('end', () => noSuchOperation(outgoing, incoming));
    seen.push(incoming.headers);
    incoming.resume().on('end', () => answer(outgoing, incoming));
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

const noSuchOperation = json(404, { code: 'not_found', message: 'There is nothing at this address.' });

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
