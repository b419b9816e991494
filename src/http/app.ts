import { METHODS } from 'node:http';
import compress from '@fastify/compress';
import apiReference from '@scalar/fastify-api-reference';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import type { BytesInFlight, Holding } from '../keys/bytes-in-flight.ts';
import type { Counted, LimitHeaders } from '../keys/request-limits.ts';
import { describeAdminApi } from './admin/description.ts';
import { adminOperations } from './admin/operations.ts';
import type { AdminParts } from './admin/parts.ts';
import type { Certificate } from './certificate.ts';
import { Connections } from './connections.ts';
import { handleError } from './error-handler.ts';
import { type Admitted, admit, admitOperator, type Seen } from './gate.ts';
import { describeApi } from './openapi.ts';
import type { JsonSchema, Operation, Parts } from './operation.ts';
import { operations } from './operations.ts';
import { type Payload, readBody } from './read-body.ts';
import { createServer } from './server.ts';
import { isStreamed, streamOf } from './streamed-body.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Ends the connections on which nothing is being answered. */
    closeIdle(): void;
  }
  interface FastifyRequest {
    /** Set once a key is known. The log names the key of a request that was refused, too. */
    keyId: string | undefined;
    /** Set once it has passed the gate: what it goes on with until it is answered. */
    passed: (Admitted & { readonly holding: Holding }) | undefined;
  }
}

/** An API to be served: what it can do, with what, and for whom. */
interface Api<P> {
  readonly operations: readonly Operation<P>[];
  readonly parts: P;
  readonly description: JsonSchema;
  readonly admit: (request: FastifyRequest, seen: Seen) => Promise<Admitted>;
}

/** The service as a function of its parts. Listening, signals and closing are the caller's. */
export async function buildApp(parts: Parts, certificate?: Certificate): Promise<FastifyInstance> {
  return build(parts.config, certificate, {
    operations,
    parts,
    description: describeApi(operations),
    admit: (request, seen) => admit(request, parts, seen),
  });
}

/** The admin API, on a server of its own. */
export async function buildAdminApp(parts: AdminParts, certificate?: Certificate): Promise<FastifyInstance> {
  return build(parts.config, certificate, {
    operations: adminOperations,
    parts,
    description: describeAdminApi(adminOperations),
    admit: (request) => admitOperator(request, parts),
  });
}

async function build<P extends BuildParts>(
  config: Config,
  certificate: Certificate | undefined,
  api: Api<P>,
): Promise<FastifyInstance> {
  const app = createServer(config, certificate);
  addHooks(app, api);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(() => {
    throw new Error('the gate lets no unknown address pass');
  });
  addBodyReader(app, api.parts);
  // Lines of JSON are among what is worth compressing; the other types it knows from a table.
  await app.register(compress, { customTypes: /^application\/x-ndjson\b/ });
  for (const operation of api.operations) addRoute(app, operation, api.parts);
  await addReference(app, api.description);
  refuseOtherMethods(app, api.operations);
  return app;
}

/** What every API needs of its parts. */
interface BuildParts {
  readonly config: Config;
  readonly bytesInFlight: BytesInFlight;
}

/**
 * The bytes as they are: what is parsed of them must not live as long as the request does. Room for them is held until
 * the request is answered, whether or not its client is still there: that is how long they are in memory.
 */
function addBodyReader(app: FastifyInstance, { config }: BuildParts): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Payload) => {
    const { holding } = passedOf(request);
    // Gone before its body was asked for: no event will tell.
    if (request.raw.destroyed) throw new RequestError('malformed_request');
    try {
      return await readBody(request.headers, payload, config.bodyBytesMax, holding);
    } catch (error) {
      holding.release();
      throw error;
    }
  });
}

/** An API has no page to protect: these say that its answers are data, and that the connection stays encrypted. */
const securityHeaders = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};

function addHooks<P extends BuildParts>(app: FastifyInstance, { parts, admit }: Api<P>): void {
  let closing = false;
  const connections = new Connections(app.server);
  app.decorate('closeIdle', () => connections.closeIdle());
  app.decorateRequest('keyId', undefined);
  app.decorateRequest('passed', undefined);
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onRequest', async (request, reply) => {
    connections.begin(request.raw.socket);
    reply.headers({ 'x-request-id': request.id, ...securityHeaders });
    if (closing) throw new RequestError('shutting_down', { headers: { connection: 'close' } });
    const admitted = await admit(request, {
      principal: ({ keyId }) => {
        request.keyId = keyId;
      },
      limits: (headers) => void reply.headers({ ...headers }),
    });
    request.passed = { ...admitted, holding: parts.bytesInFlight.hold(admitted.principal ?? nobody) };
    normaliseEncoding(request);
  });
  app.addHook('onResponse', async (request, reply) => {
    connections.end(request.raw.socket);
    const { method, routeOptions, keyId } = request;
    const durationMs = Math.round(reply.elapsedTime);
    // The route, never the address: a query may hold what identifies a person.
    request.log.info(
      { method, route: routeOptions.url, status: reply.statusCode, keyId, durationMs },
      'answered',
    );
  });
}

function passedOf({ passed }: FastifyRequest): NonNullable<FastifyRequest['passed']> {
  if (!passed) throw new Error('the gate lets nothing pass that it has not seen');
  return passed;
}

/** Whom a body is counted for that comes without a key. */
const nobody: Counted = {
  organisationId: '',
  limits: {
    requests_per_second_max: null,
    interactions_per_second_max: null,
    records_per_second_max: null,
    bytes_in_flight_max: null,
  },
};

/** Names of encodings know no case, and one has an old second name; the plugin that decodes knows the plain ones. */
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
      const { principal, query, holding } = passedOf(request);
      const { id: requestId, headers, log } = request;
      const body = request.body as Buffer | undefined;
      const params = request.params as Record<string, string>;
      const tellLimit = (limit: LimitHeaders) => addLimit(reply, limit);
      try {
        const answer = await operation.handle(
          { requestId, principal, params, query, headers, body, tellLimit, log },
          parts,
        );
        // Before the headers are set: an answer that cannot be begun has others.
        const sent = isStreamed(answer.body) ? await streamOf(answer.body, request, reply) : answer.body;
        return reply
          .code(answer.status)
          .type('application/json; charset=utf-8')
          .headers(answer.headers ?? {})
          .send(sent);
      } finally {
        holding.release();
      }
    },
  });
}

/** A second limit stands in the same header, behind the first. */
function addLimit(reply: FastifyReply, limit: LimitHeaders): void {
  for (const [name, value] of Object.entries(limit)) {
    const first = reply.getHeader(name);
    reply.header(name, first === undefined ? value : `${first}, ${value}`);
  }
}

function routeOf({ path }: Pick<Operation, 'path'>): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

/** The API description, and the page that shows it to people. The page loads nothing from elsewhere, and may not. */
async function addReference(app: FastifyInstance, description: JsonSchema): Promise<void> {
  app.get('/openapi.json', async () => description);
  await app.register(apiReference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: `${(description.info as { title: string }).title} API reference`,
      withDefaultFonts: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      defaultOpenAllTags: true,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
    },
    hooks: {
      onRequest: async (_request, reply) => {
        reply.header(
          'content-security-policy',
          "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'",
        );
      },
    },
  });
}

/** The framework answers a wrong method with 404; for each address the other methods get a route that says 405. */
function refuseOtherMethods(app: FastifyInstance, operations: readonly Pick<Operation, 'path'>[]): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method);
  }
  const urls = new Set([...operations.map(routeOf), '/openapi.json']);
  for (const url of urls) {
    const taken = app.supportedMethods.filter((method) => app.hasRoute({ method: method as 'GET', url }));
    const others = app.supportedMethods.filter((method) => !taken.includes(method));
    app.route({
      method: others as 'GET'[],
      url,
      config: { allow: taken.join(', ') },
      handler: async () => undefined,
    });
  }
}
