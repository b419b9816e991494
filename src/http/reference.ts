import type { FastifyInstance } from 'fastify';
import type { ApiName } from '../errors.ts';
import { addRedirect, keptForGood, revalidated, StaticFile } from './server/static-file.ts';

/** Written by `scripts/build-reference.ts`. The relative path is the same from `src/` and from `dist/`. */
const folder = new URL('../../dist/reference/', import.meta.url);

const pagePath = '/docs/';
const scriptPath = '/docs/scalar.js';
const descriptionPath = '/openapi.json';

export const referencePaths: readonly string[] = ['/', '/docs', pagePath, scriptPath, descriptionPath];

/** The policy prevents the page from loading anything from other hosts. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'";

export function addReference(app: FastifyInstance, api: ApiName): void {
  // For people who open the bare URL in a browser. The redirect is temporary, so that it can change later.
  addRedirect(app, '/', pagePath, 302);
  addRedirect(app, '/docs', pagePath, 301);
  addFile(app, pagePath, `${api}.html`, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': pagePolicy,
  });
  addFile(app, scriptPath, 'scalar.js', { 'content-type': 'text/javascript; charset=utf-8' });
  addFile(app, descriptionPath, `${api}.json`, { 'content-type': 'application/json; charset=utf-8' });
}

function addFile(app: FastifyInstance, url: string, name: string, headers: Record<string, string>): void {
  const file = new StaticFile(new URL(name, folder), headers);
  app.route({
    method: ['GET', 'HEAD'],
    url,
    compress: false,
    async handler(request, reply) {
      // In a rolling upgrade, a page may load another version's script. This works, but must not be cached.
      const isAskedByHash = request.url.split('?')[1] === file.hash;
      return file.send(request, reply, isAskedByHash ? keptForGood : revalidated);
    },
  });
}
