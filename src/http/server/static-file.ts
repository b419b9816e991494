import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../../limits.ts';
import { type ContentEncoding, preferredEncoding } from '../operation/accept.ts';

/**
 * Browsers cache it but revalidate each time, which costs a 304: another version of the service may have another page.
 */
export const revalidated = 'no-cache';
export const keptForGood = 'public, max-age=31536000, immutable';

/**
 * A file of the build, which lies there in each encoding. It needs no key, so requests for it must be cheap: it is read on the
 * first request and then sent to everyone from the same memory, however slowly they read.
 */
export class StaticFile {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  #file: EncodedFile | undefined;

  constructor(url: URL, headers: Readonly<Record<string, string>>) {
    this.#url = url;
    this.#headers = headers;
  }

  /** The hash of the file as it is. */
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

/** A file in each encoding, with the hash of the encoded bytes. */
type EncodedFile = Readonly<Record<ContentEncoding, { readonly bytes: Buffer; readonly hash: string }>>;

/** Takes 20 ms for the script, once. */
function readFile(url: URL): EncodedFile {
  const read = (suffix: string) => {
    const bytes = readFileSync(new URL(url.href + suffix));
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
