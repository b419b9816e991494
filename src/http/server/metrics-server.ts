import type { Server } from 'node:http';
import { limits } from '../../limits.ts';

// See errors.ts for why this is not an import.
const { createServer } = process.getBuiltinModule('node:http');

/** A separate server, because a scraper needs no key and must get a response even when the API has no connection left. */
export async function serveMetrics(
  host: string,
  port: number,
  write: () => Promise<{ readonly type: string; readonly text: string }>,
): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end('The metrics are at /metrics.\n');
      return;
    }
    write().then(
      ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.maxConnections = limits.metricsConnectionsMax;
  server.requestTimeout = limits.metricsTimeoutMs;
  // A client that does not read its response must not block Prometheus.
  server.timeout = limits.metricsTimeoutMs;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return server;
}
