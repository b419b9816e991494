import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';
import { preferredEncoding } from './accept.ts';
import { type EncodedFile, encodeFile } from './encoded-file.ts';
import type { ReferenceFiles } from './make-reference.ts';
import type { JsonSchema } from './operation.ts';

const pagePath = '/docs/';
const scriptPath = '/docs/scalar.js';
const descriptionPath = '/openapi.json';

export const referencePaths: readonly string[] = ['/', '/docs', pagePath, scriptPath, descriptionPath];

/** The page loads nothing from elsewhere, and may not. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'";

/** Kept by a browser, and asked for again each time, which costs a 304: another version may have another. */
const revalidated = 'no-cache';
const keptForGood = 'public, max-age=31536000, immutable';

/**
 * The API description, and the page that shows it to people. No key is needed for them, so they must cost nothing: each
 * is made when it is first asked for and then sent from the same memory to all, however slowly they read.
 */
export function addReference(app: FastifyInstance, describe: () => JsonSchema): void {
  const description = makeOnce(() => encodeFile(Buffer.from(JSON.stringify(describe()))));
  const files = makeOnce(() => makeFiles(describe().info as { title: string; summary: string }));
  // Whoever opens the bare address in a browser wants to know what this is. Not for good: one day it may lead elsewhere.
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
    // While versions take turns, a page of one may ask another for its script: it works, but is not to be kept.
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

/** Those who ask meanwhile wait for the same one; one that failed is made again for the next who asks. */
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
    // It needs no setting of ours, and gets no password.
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

/** Whether a client has it already. A proxy that compresses marks the tag as weak. */
function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}

/** Written as a whole, it would be encrypted as a whole, into memory of the connection's own. */
function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += limits.fileBytesPerWrite) {
    yield bytes.subarray(start, start + limits.fileBytesPerWrite);
  }
}
