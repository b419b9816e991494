import { createServer, type Server } from 'node:http';
import { limits } from '../limits.ts';

/**
 * Serves the metrics at /metrics. A server of its own and not a route: whoever scrapes it needs no key, and must get an
 * answer while the API has as many connections as it may. Fastify would add nothing.
 */
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
  // Whoever does not read the answer, too, must not keep Prometheus out.
  server.timeout = limits.metricsTimeoutMs;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return server;
}
