import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../../limits.ts';
import { preferredEncoding } from '../operation/accept.ts';
import type { JsonSchema } from '../operation/operation.ts';
import { type EncodedFile, encodeFile } from './encoded-file.ts';
import type { ReferenceFiles } from './make-reference.ts';

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
 * is made on the first request and then sent to everyone from the same memory, however slowly they read.
 */
export function addReference(app: FastifyInstance, describe: () => JsonSchema): void {
  const description = makeOnce(() => encodeFile(Buffer.from(JSON.stringify(describe()))));
  const files = makeOnce(() => makeFiles(describe().info as { title: string; summary: string }));
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
  addFile(app, pagePath, async () => ({
    file: (await files()).page,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': revalidated,
      'content-security-policy': pagePolicy,
    },
  }));
  addFile(app, scriptPath, async (query) => {
    const { script } = await files();
    // During a rolling upgrade, a page of one version may load the script of another: it works, but must not be cached.
    const isOurs = query === script.identity.hash;
    return {
      file: script,
      headers: {
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': isOurs ? keptForGood : revalidated,
      },
    };
  });
  addFile(app, descriptionPath, async () => ({
    file: await description(),
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': revalidated },
  }));
}

/** Concurrent callers share one run; after a failure the next caller tries again. */
function makeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

async function makeFiles({ title, summary }: Record<'title' | 'summary', string>): Promise<ReferenceFiles> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const program = fileURLToPath(new URL(`./make-reference.${extension}`, import.meta.url));
  const child = fork(program, [`${title} API reference`, summary, descriptionPath, scriptPath], {
    // It needs none of our settings, and must not see passwords.
    env: {},
    serialization: 'advanced',
    timeout: limits.referenceTimeoutMs,
  });
  const ended = once(child, 'disconnect').then(() => {
    throw new Error('the files of the API reference could not be made');
  });
  const [files] = (await Promise.race([once(child, 'message'), ended])) as [ReferenceFiles];
  return files;
}

interface ServedFile {
  readonly file: EncodedFile;
  readonly headers: Readonly<Record<string, string>>;
}

function addFile(app: FastifyInstance, url: string, find: (query: string) => Promise<ServedFile>): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    compress: false,
    async handler(request, reply) {
      const { file, headers } = await find(request.url.split('?')[1] ?? '');
      return sendFile(request, reply.headers(headers), file);
    },
  });
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: EncodedFile): FastifyReply {
  const encoding = preferredEncoding(request.headers['accept-encoding']);
  const { bytes, hash } = file[encoding];
  const etag = `"${hash}"`;
  reply.headers({ etag, vary: 'accept-encoding' });
  if (isKnown(etag, request.headers['if-none-match']))
    return reply.removeHeader('content-type').code(304).send();
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  reply.header('content-length', bytes.length);
  return request.method === 'HEAD' ? reply.send() : reply.send(Readable.from(piecesOf(bytes)));
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
