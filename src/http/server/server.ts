import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
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
import type { LoggedCounts } from '../../uploads/answer/answer.ts';
import { rewriteConsoleUrl } from '../gate.ts';
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

interface Open {
  /** The pending responses, in the order of their requests. */
  readonly answering: ServerResponse[];
  /** When the connection was opened or its last response was sent. */
  idleSinceMs: number;
}

/** Node counts a connection as idle only after its first response, so a silent one would delay shutdown. */
export class Connections {
  readonly #open = new Map<Socket, Open>();
  /** The accepted TCP sockets below the TLS sockets. Empty without TLS. */
  readonly #carriers = new Set<Socket>();

  constructor(server: Server) {
    const isTls = server instanceof TlsServer;
    // With TLS, requests arrive on the TLS socket, not on the TCP socket that was accepted.
    server.on('connection', (socket: Socket) =>
      isTls ? this.#rememberCarrier(socket) : this.#remember(socket),
    );
    server.on('secureConnection', (socket: Socket) => this.#remember(socket));
  }

  #remember(socket: Socket): void {
    this.#open.set(socket, { answering: [], idleSinceMs: performance.now() });
    socket.once('close', () => this.#open.delete(socket));
  }

  #rememberCarrier(socket: Socket): void {
    this.#carriers.add(socket);
    socket.once('close', () => this.#carriers.delete(socket));
  }

  begin(socket: Socket, response: ServerResponse): void {
    this.#open.get(socket)?.answering.push(response);
  }

  end(socket: Socket, response: ServerResponse): void {
    // The socket may already be closed.
    const open = this.#open.get(socket);
    const index = open?.answering.indexOf(response) ?? -1;
    if (!open || index < 0) return;
    open.answering.splice(index, 1);
    open.idleSinceMs = performance.now();
  }

  isAnswering(socket: Socket): boolean {
    return (this.#open.get(socket)?.answering.length ?? 0) > 0;
  }

  endWithAnswers(): void {
    for (const { answering } of this.#open.values()) {
      const last = answering.at(-1);
      if (last && !last.headersSent) last.setHeader('connection', 'close');
    }
  }

  countUnderWay(): number {
    let count = 0;
    for (const { answering } of this.#open.values()) count += answering.length;
    return count;
  }

  /** A request may be on its way on a connection that was used more recently. Data already written is still delivered. */
  closeIdle(idleMs: number): void {
    const beforeMs = performance.now() - idleMs;
    for (const [socket, { answering, idleSinceMs }] of this.#open)
      if (answering.length === 0 && idleSinceMs <= beforeMs) socket.destroySoon();
    for (const socket of this.#carriers) if (socket.bytesRead === 0) socket.destroySoon();
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined if the URL could not be decoded, because such a request skips the hooks. */
    line: RequestLine | undefined;
  }
}

/**
 * One object is filled in step by step. It contains nothing that the client sent: no URL, because the query may identify a
 * person, and only the body's size. Operators need the IP address to know where a request came from.
 */
interface RequestLine {
  operation_id: string | undefined;
  /** The route's pattern. Set only for requests that are not an operation, such as the reference page or a 405. */
  readonly route: string | undefined;
  readonly method: string | undefined;
  organisation_id: string | undefined;
  key_id: string | undefined;
  readonly client_address: string | undefined;
  /** The size after decompression. */
  body_bytes: number | undefined;
  dry_run: true | undefined;
  counts: LoggedCounts | undefined;
  status: number;
  /** `code` is the API's error code. For database errors, `cause` is the error code from the driver or from PostgreSQL. */
  code: string | undefined;
  cause: string | undefined;
  duration_ms: number;
}

export function beginLine(request: FastifyRequest, isBehindProxy: boolean): RequestLine {
  const { routeOptions, ip } = request;
  const { operation } = routeOptions.config;
  return {
    operation_id: operation?.id,
    route: operation ? undefined : routeOptions.url,
    method: operation ? undefined : request.method,
    organisation_id: undefined,
    key_id: undefined,
    // Read now, because a closed socket no longer has an address. Behind a proxy, the value may be any string.
    client_address: isBehindProxy && isIP(ip) === 0 ? undefined : ip,
    body_bytes: undefined,
    dry_run: undefined,
    counts: undefined,
    status: 0,
    code: undefined,
    cause: undefined,
    duration_ms: 0,
  };
}

export function lineEnder() {
  let recorded = 0;
  return ({ line, log }: FastifyRequest, reply: FastifyReply): void => {
    if (!line) return;
    line.status = reply.statusCode;
    line.duration_ms = Math.round(reply.elapsedTime);
    // Logging takes a tenth of the CPU time of an interaction, and there is nothing to report about a normal one.
    const isUsual =
      line.operation_id === 'record-interaction' &&
      line.status < 400 &&
      line.duration_ms < limits.slowInteractionMs &&
      recorded++ % limits.interactionsPerLogLine !== 0;
    // Health probes arrive every few seconds.
    if (isUsual || line.operation_id?.startsWith('health-')) log.debug(line, 'answered');
    else if (line.status >= 500) log.warn(line, 'answered');
    else log.info(line, 'answered');
  };
}
