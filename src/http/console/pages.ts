import { existsSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { type ApiName, RequestError } from '../../errors.ts';
import { addRedirect, keptForGood, revalidated, StaticFile } from '../server/static-file.ts';

/** The build of `console/` writes this folder. The relative path is the same from `src/` and from `dist/`. */
const folder = new URL('../../../dist/console/', import.meta.url);

/** The organisation's console and the operator's console share their scripts and styles. */
const pages: Readonly<Record<ApiName, string>> = { public: 'index.html', admin: 'operator.html' };

export const consolePaths: readonly string[] = ['/console', '/console/', '/console/*'];

/** The page loads nothing from other hosts and runs only the console's own scripts. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A worker is not bound by its page's policy, and the code that reads files must not make any requests. */
const workerPolicy = "default-src 'none'; script-src 'self'";

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Scripts and styles have a hash in their names. Every other path gets the single page, which renders its view. */
export function addConsole(app: FastifyInstance, api: ApiName): void {
  const page = new StaticFile(new URL(pages[api], folder), {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': pagePolicy,
    'x-frame-options': 'DENY',
  });
  const assets = new Map(assetNames().map((name) => [name, assetOf(name)]));
  addRedirect(app, '/console', '/console/', 301);
  app.route({
    method: ['GET', 'HEAD'],
    url: '/console/',
    compress: false,
    handler: async (request, reply) => page.send(request, reply, revalidated),
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/console/*',
    compress: false,
    async handler(request, reply) {
      const { '*': path } = request.params as { '*': string };
      const [folderName, name = ''] = path.split('/', 2);
      if (folderName !== 'assets' && folderName !== 'api') return page.send(request, reply, revalidated);
      const asset = assets.get(name);
      if (folderName === 'api' || !asset) throw new RequestError('not_found');
      return asset.send(request, reply, keptForGood);
    },
  });
}

function assetNames(): string[] {
  const url = new URL('assets/', folder);
  return existsSync(url) ? readdirSync(url).filter((name) => extname(name) in types) : [];
}

function assetOf(name: string): StaticFile {
  return new StaticFile(new URL(`assets/${name}`, folder), {
    'content-type': types[extname(name)] as string,
    ...(extname(name) === '.js' && { 'content-security-policy': workerPolicy }),
  });
}
