import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { ApiName } from '../errors.ts';
import { limits } from '../limits.ts';
import { type ContentEncoding, preferredEncoding } from './operation/accept.ts';

/** Written by scripts/build-reference.ts. The same path from `src/` and from `dist/`. */
const folder = new URL('../../dist/reference/', import.meta.url);

const pagePath = '/docs/';
const scriptPath = '/docs/scalar.js';
const descriptionPath = '/openapi.json';

export const referencePaths: readonly string[] = ['/', '/docs', pagePath, scriptPath, descriptionPath];

/** The page loads nothing from other hosts, and may not. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'";

/**
 * Browsers cache it but revalidate each time, which costs a 304: another version of the service may have another page.
 */
const revalidated = 'no-cache';
const keptForGood = 'public, max-age=31536000, immutable';

/**
 * Serves the API description and the page that shows it. Neither needs a key, so requests for them must be cheap: each
 * file is read on the first request and then sent to everyone from the same memory, however slowly they read.
 */
export function addReference(app: FastifyInstance, api: ApiName): void {
  // Someone who opens the bare address in a browser wants to know what this is. Not permanent: it may lead elsewhere
  // one day.
  for (const [url, status] of [
    ['/', 302],
    ['/docs', 301],
  ] as const) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: async (_request, reply) =>
        reply.header('cache-control', revalidated).redirect(pagePath, status),
    });
  }
  addFile(app, pagePath, `${api}.html`, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': pagePolicy,
  });
  addFile(app, scriptPath, 'scalar.js', { 'content-type': 'text/javascript; charset=utf-8' });
  addFile(app, descriptionPath, `${api}.json`, { 'content-type': 'application/json; charset=utf-8' });
}

function addFile(app: FastifyInstance, url: string, name: string, headers: Record<string, string>): void {
  let file: EncodedFile | undefined;
  app.route({
    method: ['GET', 'HEAD'],
    url,
    compress: false,
    async handler(request, reply) {
      file ??= readFile(name);
      const encoding = preferredEncoding(request.headers['accept-encoding']);
      const { bytes, hash } = file[encoding];
      // The page asks for the script with its hash. During a rolling upgrade, a page of one version may load the script
      // of another: it works, but must not be cached.
      const isAskedByHash = request.url.split('?')[1] === file.identity.hash;
      const etag = `"${hash}"`;
      const cacheControl = isAskedByHash ? keptForGood : revalidated;
      reply.headers({ ...headers, etag, 'cache-control': cacheControl, vary: 'accept-encoding' });
      if (isKnown(etag, request.headers['if-none-match']))
        return reply.removeHeader('content-type').code(304).send();
      reply.header('content-length', bytes.length);
      if (encoding !== 'identity') reply.header('content-encoding', encoding);
      return request.method === 'HEAD' ? reply.send() : reply.send(Readable.from(piecesOf(bytes)));
    },
  });
}

/** A file in each encoding, with the hash of the encoded bytes. */
type EncodedFile = Readonly<Record<ContentEncoding, { readonly bytes: Buffer; readonly hash: string }>>;

/** Takes 20 ms for the script, once. */
function readFile(name: string): EncodedFile {
  const read = (suffix: string) => {
    const bytes = readFileSync(new URL(name + suffix, folder));
    return { bytes, hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22) };
  };
  return { br: read('.br'), gzip: read('.gz'), identity: read('') };
}

/** Whether the client has this version already. A proxy that compresses marks the ETag as weak. */
function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}

/** In one write, TLS would encrypt all of it into a buffer of the connection's own. */
function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += limits.fileBytesPerWrite) {
    yield bytes.subarray(start, start + limits.fileBytesPerWrite);
  }
}
