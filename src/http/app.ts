import { METHODS } from 'node:http';
import compress from '@fastify/compress';
import apiReference from '@scalar/fastify-api-reference';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RequestError } from '../errors.ts';
import { handleError } from './error-handler.ts';
import { type Admitted, admit } from './gate.ts';
import { describeApi } from './openapi.ts';
import type { Operation, Parts } from './operation.ts';
import { operations } from './operations.ts';
import { createServer } from './server.ts';
import { isStreamed, streamOf } from './streamed-body.ts';

/** The service as a function of its parts. Listening, signals and closing are the caller's. */
export async function buildApp(parts: Parts): Promise<FastifyInstance> {
  const app = createServer(parts.config);
  const admitted = new WeakMap<FastifyRequest, Admitted>();
  addHooks(app, parts, admitted);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(() => {
    throw new Error('the gate lets no unknown address pass');
  });
  app.removeAllContentTypeParsers();
  // The bytes as they are: what is parsed of them must not live as long as the request does.
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, body: Buffer) => body,
  );
  // Lines of JSON are among what is worth compressing; the other types it knows from a table.
  await app.register(compress, { customTypes: /^application\/x-ndjson\b/ });
  for (const operation of operations) addRoute(app, operation, parts, admitted);
  await addReference(app);
  refuseOtherMethods(app);
  app.addHook('onClose', async () => {
    await Promise.all([parts.checker.close(), parts.writer.close()]);
  });
  return app;
}

/** An API has no page to protect: these say that its answers are data, and that the connection stays encrypted. */
const securityHeaders = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};

function addHooks(app: FastifyInstance, parts: Parts, admitted: WeakMap<FastifyRequest, Admitted>): void {
  let closing = false;
  // Kept apart from what was admitted: the log names the key of a request that was refused, too.
  const keyIds = new WeakMap<FastifyRequest, string>();
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'x-request-id': request.id, ...securityHeaders });
    if (closing) throw new RequestError('shutting_down', { headers: { connection: 'close' } });
    const principal = ({ keyId }: { keyId: string }) => keyIds.set(request, keyId);
    const seen = { principal, limits: (headers: Record<string, string>) => reply.headers(headers) };
    admitted.set(request, await admit(request, parts, seen));
    normaliseEncoding(request);
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    const keyId = keyIds.get(request);
    const durationMs = Math.round(reply.elapsedTime);
    // The route, never the address: a query may hold what identifies a person.
    request.log.info(
      { method, route: routeOptions.url, status: reply.statusCode, keyId, durationMs },
      'answered',
    );
  });
}

/** Names of encodings know no case, and one has an old second name; the plugin that decodes knows the plain ones. */
function normaliseEncoding({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']?.toLowerCase();
  if (encoding !== undefined) headers['content-encoding'] = encoding === 'x-gzip' ? 'gzip' : encoding;
}

function addRoute(
  app: FastifyInstance,
  operation: Operation,
  parts: Parts,
  admitted: WeakMap<FastifyRequest, Admitted>,
): void {
  app.route({
    method: operation.method,
    url: operation.path.replace(/\{(\w+)\}/g, ':$1'),
    config: { operation },
    async handler(request, reply) {
      const { principal, query } = admitted.get(request) as Admitted;
      const { id: requestId, headers, log } = request;
      const body = request.body as Buffer | undefined;
      const params = request.params as Record<string, string>;
      const answer = await operation.handle(
        { requestId, principal, params, query, headers, body, log },
        parts,
      );
      // Before the headers are set: an answer that cannot be begun has others.
      const sent = isStreamed(answer.body) ? await streamOf(answer.body, request, reply) : answer.body;
      return reply
        .code(answer.status)
        .type('application/json; charset=utf-8')
        .headers(answer.headers ?? {})
        .send(sent);
    },
  });
}

/** The API description, and the page that shows it to people. The page loads nothing from elsewhere, and may not. */
async function addReference(app: FastifyInstance): Promise<void> {
  const description = describeApi(operations);
  app.get('/openapi.json', async () => description);
  await app.register(apiReference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Intake API reference',
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
function refuseOtherMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method);
  }
  const urls = new Set([...operations.map(({ path }) => path.replace(/\{(\w+)\}/g, ':$1')), '/openapi.json']);
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
