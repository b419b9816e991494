import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../../limits.ts';
import { type ContentEncoding, preferredEncoding } from '../operation/accept.ts';

/** Browsers revalidate each time, at the cost of a 304: another version of the service may serve a different page. */
export const revalidated = 'no-cache';
export const keptForGood = 'public, max-age=31536000, immutable';

/** Needs no key, so it must be cheap: each encoding is read once, and sent from the same memory to every client. */
export class StaticFile {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  #file: EncodedFile | undefined;

  constructor(url: URL, headers: Readonly<Record<string, string>>) {
    this.#url = url;
    this.#headers = headers;
  }

  get hash(): string {
    return this.#read().identity.hash;
  }

  send(request: FastifyRequest, reply: FastifyReply, cacheControl: string): FastifyReply {
    const encoding = preferredEncoding(request.headers['accept-encoding']);
    const { bytes, hash } = this.#read()[encoding];
    const etag = `"${hash}"`;
    reply.headers({ ...this.#headers, etag, 'cache-control': cacheControl, vary: 'accept-encoding' });
    if (isKnown(etag, request.headers['if-none-match']))
      return reply.removeHeader('content-type').code(304).send();
    reply.header('content-length', bytes.length);
    if (encoding !== 'identity') reply.header('content-encoding', encoding);
    return request.method === 'HEAD' ? reply.send() : reply.send(Readable.from(piecesOf(bytes)));
  }

  #read(): EncodedFile {
    this.#file ??= readFile(this.#url);
    return this.#file;
  }
}

type EncodedFile = Readonly<Record<ContentEncoding, { readonly bytes: Buffer; readonly hash: string }>>;

export function addRedirect(app: FastifyInstance, url: string, to: string, status: 301 | 302): void {
  const handler = async (_request: FastifyRequest, reply: FastifyReply) =>
    reply.header('cache-control', revalidated).redirect(to, status);
  app.route({ method: ['GET', 'HEAD'], url, handler });
}

/** For the reference page's script this takes 20 ms, once per process. */
function readFile(url: URL): EncodedFile {
  const read = (suffix: string) => {
    const bytes = readFileSync(new URL(url.href + suffix));
    return { bytes, hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22) };
  };
  return { br: read('.br'), gzip: read('.gz'), identity: read('') };
}

/** A proxy that compresses the file marks the ETag as weak. */
function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}

/** TLS would encrypt a single large write into one buffer per connection. */
function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += limits.fileBytesPerWrite) {
    yield bytes.subarray(start, start + limits.fileBytesPerWrite);
  }
}
