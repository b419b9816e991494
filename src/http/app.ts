// http/: the list of operations, the gate, the routes and the server. No other folder imports Fastify.

import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { constants } from 'node:zlib';
import compress, { type FastifyCompressOptions } from '@fastify/compress';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ActivityCounts } from '../activity/activity-counts.ts';
import type { BytesInFlight, Holding } from '../admission/bytes-in-flight.ts';
import type { Counted, LimitHeaders } from '../admission/request-limits.ts';
import type { Config } from '../config.ts';
import { type ApiName, RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type Step, untraced } from '../traces/step.ts';
import type { Began, RequestTrace, Traces } from '../traces/traces.ts';
import { adminOperations } from './admin/operations.ts';
import type { AdminParts } from './admin/parts.ts';
import { operatorSessionOperations } from './console/operator-session.ts';
import { addConsole, consolePaths } from './console/pages.ts';
import { consoleOperations } from './console/session.ts';
import { type Admission, admit, admitOperator, preflightHeaders } from './gate.ts';
import { isJsonLines, jsonLines } from './operation/accept.ts';
import { repeatedKey } from './operation/idempotency-key.ts';
import type { Answer, Call, Operation, Parts } from './operation/operation.ts';
import { operations } from './operations.ts';
import { addReference, referencePaths } from './reference.ts';
import type { Certificate } from './server/certificate.ts';
import { handleError, refuseConnect } from './server/error-handler.ts';
import { discardRest, isStreamed, type Payload, readBody, streamOf } from './server/read-body.ts';
import { beginLine, Connections, createServer, lineEnder } from './server/server.ts';

// See errors.ts for why this is not an import.
const { METHODS } = process.getBuiltinModule('node:http');

declare module 'fastify' {
  interface FastifyInstance {
    /** Closes each connection after its pending responses, or if it is idle, after its next response. */
    endConnections(): void;
    /** Closes connections that have had no request in progress for `idleMs`. */
    closeIdle(idleMs: number): void;
    countUnderWay(): number;
  }
  interface FastifyRequest {
    passed: (Admission & { readonly holding: Holding }) | undefined;
    /** Undefined if tracing is off or the request is not traced. */
    trace: RequestTrace | undefined;
  }
}

interface Api<P> {
  readonly name: ApiName;
  readonly operations: readonly Operation<P>[];
  readonly parts: P;
  readonly admit: (request: FastifyRequest) => Promise<Admission>;
}

/** The caller must start listening, handle signals and close it. */
export async function buildApp(parts: Parts, certificate?: Certificate): Promise<FastifyInstance> {
  return build(certificate, {
    name: 'public',
    operations: parts.config.console ? [...operations, ...consoleOperations] : operations,
    parts,
    admit: (request) => admit(request, parts),
  });
}

export async function buildAdminApp(parts: AdminParts, certificate?: Certificate): Promise<FastifyInstance> {
  return build(certificate, {
    name: 'admin',
    operations: parts.config.console ? [...adminOperations, ...operatorSessionOperations] : adminOperations,
    parts,
    admit: (request) => admitOperator(request, parts),
  });
}

async function build<P extends BuildParts>(
  certificate: Certificate | undefined,
  api: Api<P>,
): Promise<FastifyInstance> {
  const { config } = api.parts;
  const app = createServer(api.name, config, certificate);
  addHooks(app, api);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(() => {
    throw new Error('the gate lets no unknown address pass');
  });
  addBodyReader(app, api.parts);
  await app.register(compress, compression);
  for (const operation of api.operations) addRoute(app, operation, api.parts);
  if (config.apiReference) addReference(app, api.name);
  if (config.console) addConsole(app, api.name);
  const urls = [
    ...api.operations.map(routeOf),
    ...(config.apiReference ? referencePaths : []),
    ...(config.console ? consolePaths : []),
  ];
  refuseOtherMethods(app, urls, api.operations.filter(({ isForBrowsers }) => isForBrowsers).map(routeOf));
  return app;
}

/**
 * A page of rejections takes 2 milliseconds to compress with Brotli's quality 1, and 8 with the plugin's 4, which makes it
 * no smaller. With gzip it takes 4 at level 1, and 8 at the default level, which makes it a tenth smaller.
 */
const compression: FastifyCompressOptions = {
  // The plugin's table of compressible types lacks NDJSON.
  customTypes: /^application\/x-ndjson\b/,
  brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } },
  zlibOptions: { level: constants.Z_BEST_SPEED },
};

interface BuildParts {
  readonly config: Config;
  readonly bytesInFlight: BytesInFlight;
  readonly metrics?: Metrics | undefined;
  readonly traces?: Traces | undefined;
  readonly activity?: ActivityCounts;
}

/**
 * Operations get bytes, so that parsed objects do not live as long as the request. The memory stays reserved until the
 * request is answered, even if the client has disconnected, because the bytes stay in memory until then.
 */
function addBodyReader(app: FastifyInstance, { config }: BuildParts): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['application/json', jsonLines],
    async (request: FastifyRequest, payload: Payload) => {
      const { holding, principal } = passedOf(request);
      const { operation } = request.routeOptions.config;
      const { requestBody } = operation ?? {};
      const ownMax = requestBody ? requestBody.bytesMax : limits.unexpectedBodyBytesMax;
      const ofVisitor = principal?.visitor === undefined ? Infinity : limits.browserBatchBytesMax;
      const bytesMax = Math.min(ownMax ?? config.bodyBytesMax, ofVisitor);
      // If the client disconnected before its body was read, no event will report it.
      if (request.raw.destroyed) throw new RequestError('malformed_request');
      try {
        if (!requestBody?.takesLines && isJsonLines(request.headers['content-type']))
          throw new RequestError('unsupported_media_type');
        const read = () => readBody(request.headers, payload, bytesMax, holding);
        const body = await stepOf(request)('receive body', read);
        // Recorded now, because a large body is later transferred to a worker thread.
        if (request.line) request.line.body_bytes = body.length;
        return body;
      } catch (error) {
        holding.release();
        await discardRest(request.raw, payload);
        throw error;
      }
    },
  );
}

/** Responses are data, not pages: they must not be cached, and clients must use HTTPS. */
const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};

function addHooks<P extends BuildParts>(app: FastifyInstance, { parts, admit }: Api<P>): void {
  let closing = false;
  const connections = new Connections(app.server);
  const endLine = lineEnder();
  app.decorate('endConnections', () => {
    closing = true;
    connections.endWithAnswers();
  });
  app.decorate('closeIdle', (idleMs: number) => connections.closeIdle(idleMs));
  app.decorate('countUnderWay', () => connections.countUnderWay());
  app.server.on('connect', (_request, socket: Socket) => {
    // If the error were sent now, the client would mistake it for the response to an earlier request.
    if (connections.isAnswering(socket)) socket.destroy();
    else refuseConnect(socket);
  });
  app.decorateRequest('line', undefined);
  app.decorateRequest('passed', undefined);
  app.decorateRequest('trace', undefined);
  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw;
    const isBehindLast = closing && connections.isAnswering(socket);
    connections.begin(socket, reply.raw);
    const line = beginLine(request, parts.config.trustedProxy.length > 0);
    request.line = line;
    reply.headers({ 'x-request-id': request.id, ...securityHeaders, ...repeatedKey(request) });
    // The previous response on this connection already has `connection: close`.
    if (isBehindLast) throw new RequestError('shutting_down', { headers: { connection: 'close' } });
    // A proxy may send a request before it notices that this process is stopping.
    if (closing) reply.header('connection', 'close');
    const began = { epochMs: Date.now(), monotonicMs: performance.now() };
    const admission = await admit(request);
    const { principal, headers, refusal } = admission;
    line.organisation_id = principal?.organisationId;
    line.key_id = principal?.keyId;
    reply.headers(headers);
    if (parts.traces) beginTrace(request, parts.traces, principal !== undefined, began);
    if (refusal !== undefined) throw refusal;
    request.passed = { ...admission, holding: parts.bytesInFlight.hold(principal ?? nobody) };
    normaliseEncoding(request);
  });
  app.addHook('onResponse', async (request, reply) => {
    connections.end(request.raw.socket, reply.raw);
    endLine(request, reply);
    if (!request.line) return;
    parts.metrics?.answered(request.line, reply.elapsedTime);
    parts.activity?.answered(request.line);
    request.trace?.end(request.line);
  });
}

/** The framework's logger is a pino logger, but its type lacks this method. */
type BoundLogger = FastifyBaseLogger & { setBindings(bindings: object): void };

/**
 * Spans are named after the route's pattern, never after the URL. Without a valid key, the caller's `traceparent` is
 * ignored, because anyone could use it to flood the collector.
 */
function beginTrace(request: FastifyRequest, traces: Traces, hasKey: boolean, began: Began): void {
  const { operation } = request.routeOptions.config;
  const route = operation?.path ?? 'none';
  const name = operation ? `${operation.method} ${route}` : 'none';
  const attributes = {
    'http.request.method': request.method,
    'http.route': route,
    'intake.operation_id': operation?.id ?? 'none',
    'intake.request_id': request.id,
  };
  const traceparent = hasKey ? request.headers.traceparent : undefined;
  request.trace = traces.beginRequest(name, traceparent, attributes, began);
  const traceId = request.trace?.traceId;
  if (traceId !== undefined) (request.log as BoundLogger).setBindings({ trace_id: traceId });
}

function stepOf({ trace }: FastifyRequest): Step {
  return trace ? trace.step : untraced;
}

function passedOf({ passed }: FastifyRequest): NonNullable<FastifyRequest['passed']> {
  if (!passed) throw new Error('the gate lets nothing pass that it has not seen');
  return passed;
}

/** The memory for bodies sent without a key is counted under this placeholder. */
const nobody: Counted = {
  organisationId: '',
  visitor: undefined,
  limits: {
    requests_per_second_max: null,
    interactions_per_second_max: null,
    records_per_second_max: null,
    bytes_in_flight_max: null,
  },
};

/** Names are case-insensitive, and gzip has an old alias, but the decoding plugin knows only plain lower-case names. */
function normaliseEncoding({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']?.toLowerCase();
  if (encoding !== undefined) headers['content-encoding'] = encoding === 'x-gzip' ? 'gzip' : encoding;
}

function addRoute<P>(app: FastifyInstance, operation: Operation<P>, parts: P): void {
  app.route({
    method: operation.method,
    url: routeOf(operation),
    config: { operation },
    async handler(request, reply) {
      const { query, holding } = passedOf(request);
      const call = callOf(request, reply);
      try {
        const handle = () => operation.handle(call, parts);
        const answer = await (request.trace ? request.trace.within(handle) : handle());
        if (request.line) {
          request.line.counts = answer.counts;
          request.line.dry_run = query.dry_run === true ? true : undefined;
        }
        const { sent, bytes } = await sendable(answer, request, reply);
        holdAnswer(request, reply, holding, bytes);
        if (answer.isLive) keepUnbuffered(request, reply);
        return reply
          .code(answer.status)
          .type('application/json; charset=utf-8')
          .headers(answer.headers ?? {})
          .send(sent);
      } catch (error) {
        holding.release();
        throw error;
      }
    },
  });
}

function callOf(request: FastifyRequest, reply: FastifyReply): Call {
  const { principal, token, query, overQuota, holding } = passedOf(request);
  const body = request.body as Buffer | undefined;
  return {
    requestId: request.id,
    client: () => ({ address: request.ip, isEncrypted: request.protocol === 'https' }),
    principal,
    token,
    overQuota,
    params: request.params as Record<string, string>,
    query,
    headers: request.headers,
    body,
    reserve: (bytes) => holding.grow((body?.length ?? 0) + bytes),
    hold(bytes) {
      holding.grow(bytes);
      holding.set(bytes);
    },
    tellLimit: (limit) => addLimit(reply, limit),
    onClose: (listener) => void reply.raw.once('close', listener),
    log: request.log,
    step: stepOf(request),
  };
}

/** Turns off compression, which would delay lines, and the buffering that nginx does by default. */
function keepUnbuffered(request: FastifyRequest, reply: FastifyReply): void {
  delete request.headers['accept-encoding'];
  reply.header('x-accel-buffering', 'no');
}

/** Runs before any header is set, because an error needs other headers. `bytes` are reserved until the client reads them. */
async function sendable(
  { body, bytes = limits.streamedAnswerBytes }: Answer,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<{ sent: string | Buffer | Readable; bytes: number }> {
  if (isStreamed(body)) return { sent: await streamOf(body, request, reply), bytes };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  if (text.length < limits.answerBytesForSocket) return { sent: text, bytes: 0 };
  // Keep the response outside the JavaScript heap, which is reserved for work in progress.
  const sent = Buffer.from(text);
  return { sent, bytes: sent.length };
}

/** A read can still be refused here, but after a request that stores data, the response is always sent. */
function holdAnswer(
  { method, raw: { socket } }: FastifyRequest,
  reply: FastifyReply,
  holding: Holding,
  bytes: number,
): void {
  if (method === 'GET' || method === 'HEAD') holding.grow(bytes);
  else holding.set(bytes);
  if (bytes === 0 || socket.destroyed) holding.release();
  else reply.raw.once('close', () => holding.release());
}

/** The headers may already contain another limit, or an earlier count of the same one, which this count replaces. */
function addLimit(reply: FastifyReply, limit: LimitHeaders): void {
  for (const [name, value] of Object.entries(limit)) {
    const first = reply.getHeader(name) as string | undefined;
    const isSame = first?.split(';', 1)[0] === value.split(';', 1)[0];
    reply.header(name, first === undefined || isSame ? value : `${first}, ${value}`);
  }
}

function routeOf({ path }: Pick<Operation, 'path'>): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

/** Without these routes, Fastify would answer other methods with 404 instead of 405. */
function refuseOtherMethods(
  app: FastifyInstance,
  urls: readonly string[],
  forBrowsers: readonly string[],
): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method);
  }
  for (const url of new Set(urls)) {
    const taken = app.supportedMethods.filter((method) => app.hasRoute({ method: method as 'GET', url }));
    const others = app.supportedMethods.filter((method) => !taken.includes(method));
    app.route({
      method: others as 'GET'[],
      url,
      config: { allow: taken.join(', '), isForBrowsers: forBrowsers.includes(url) },
      // The gate lets only preflights reach this handler.
      handler: (_, reply) => reply.code(204).headers(preflightHeaders).send(),
    });
  }
}
