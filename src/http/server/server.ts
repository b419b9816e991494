import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:tls';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Config } from '../../config.ts';
import { type ApiName, RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { serializeError } from '../../postgres/loggable-error.ts';
import { withoutConsole } from '../console/from-console.ts';
import type { Certificate } from './certificate.ts';
import { handleClientError, handleError, lastHeaders } from './error-handler.ts';
import { GroupedOutput } from './grouped-output.ts';

/** An empty server with every timeout and limit set; Fastify leaves most of them unlimited. */
export function createServer(
  api: ApiName,
  config: Config,
  certificate: Certificate | undefined,
): FastifyInstance {
  const options = {
    logger: {
      level: config.logLevel,
      stream: new GroupedOutput(),
      serializers: { err: serializeError },
      base: null,
      timestamp,
    },
    genReqId: () => randomUUIDv7(),
    logController: new LogController({ requestIdLogLabel: 'request_id', disableRequestLogging: true }),
    bodyLimit: config.bodyBytesMax,
    requestTimeout: config.requestTimeoutMs,
    keepAliveTimeout: Math.min(limits.keepAliveTimeoutMs, config.idleTimeoutMs),
    connectionTimeout: config.idleTimeoutMs,
    return503OnClosing: false,
    trustProxy: config.trustedProxy.length > 0 ? [...config.trustedProxy] : false,
    clientErrorHandler: handleClientError,
    frameworkErrors: refuseBadAddress,
    // The header limit already bounds the address and its parts; a second limit would only give another error.
    routerOptions: { maxParamLength: limits.headersBytesMax },
    rewriteUrl(request: IncomingMessage): string {
      const url = request.url?.replace(/^https?:\/\/[^/?#]*/i, '') || '/';
      return config.console ? withoutConsole(api, request, url) : url;
    },
  };
  const http = {
    maxHeaderSize: limits.headersBytesMax,
    headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
    connectionsCheckingInterval: limits.connectionsCheckIntervalMs,
    // Node would answer with no body; the gate refuses a missing Host in the shape of every other error.
    requireHostHeader: false,
  };
  const app = certificate
    ? fastify({
        ...options,
        https: { ...http, ...certificate.pair, handshakeTimeout: config.headersTimeoutMs },
      })
    : fastify({ ...options, http });
  app.server.maxConnections = config.connectionsMax;
  app.server.on('checkExpectation', refuseExpectation);
  certificate?.useFor(app.server as TlsServer);
  return app as unknown as FastifyInstance;
}

let [writtenMs, written] = [0, ''];

/**
 * The timestamp of a log line, cached because many lines share it: formatting it took 3 microseconds of each request.
 */
function timestamp(): string {
  const nowMs = Date.now();
  if (nowMs !== writtenMs) [writtenMs, written] = [nowMs, `,"time":"${new Date(nowMs).toISOString()}"`];
  return written;
}

/** An address that cannot be decoded skips the hooks. */
function refuseBadAddress(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(lastHeaders(request.id));
  handleError(error, request, reply);
  const client_address = request.raw.socket.remoteAddress;
  request.log.info({ client_address, status: 400, code: 'malformed_request' }, 'answered');
}

function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refused = new RequestError('expectation_failed');
  response.writeHead(refused.status, lastHeaders()).end(JSON.stringify(refused.body()));
}
