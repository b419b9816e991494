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
import { rewriteConsoleUrl } from '../console/from-console.ts';
import type { Certificate } from './certificate.ts';
import { handleClientError, handleError, lastHeaders } from './error-handler.ts';

/** Every timeout and limit is set, because Fastify leaves most of them unlimited. */
export function createServer(
  api: ApiName,
  config: Config,
  certificate: Certificate | undefined,
): FastifyInstance {
  const options = {
    logger: loggerOf(config),
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
    // The header limit already covers the URL and its parts. A second limit would only add a second kind of error.
    routerOptions: { maxParamLength: limits.headersBytesMax },
    rewriteUrl(request: IncomingMessage): string {
      const url = request.url?.replace(/^https?:\/\/[^/?#]*/i, '') || '/';
      return config.console ? rewriteConsoleUrl(api, request, url) : url;
    },
  };
  const http = {
    maxHeaderSize: limits.headersBytesMax,
    headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
    connectionsCheckingInterval: limits.connectionsCheckIntervalMs,
    // Node would answer without a body. Instead, the gate refuses a missing Host header with our usual error format.
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

export function loggerOf({ logLevel }: Pick<Config, 'logLevel'>) {
  return {
    level: logLevel,
    stream: new GroupedOutput(),
    serializers: { err: serializeError },
    base: null,
    timestamp,
  };
}

/** Writes the lines of an event-loop turn together. A write per line was the largest cost of a small request. */
class GroupedOutput {
  #lines = '';

  constructor() {
    // The last lines often explain why the process exits.
    process.once('exit', () => this.#flush());
  }

  write(line: string): void {
    if (this.#lines === '') setImmediate(() => this.#flush());
    this.#lines += line;
  }

  #flush(): void {
    if (this.#lines !== '') process.stdout.write(this.#lines);
    this.#lines = '';
  }
}

let [writtenMs, written] = [0, ''];

/** Cached, because many lines share a timestamp, and formatting one took 3 microseconds per request. */
function timestamp(): string {
  const nowMs = Date.now();
  if (nowMs !== writtenMs) [writtenMs, written] = [nowMs, `,"time":"${new Date(nowMs).toISOString()}"`];
  return written;
}

/** A request whose URL cannot be decoded skips the hooks. */
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
