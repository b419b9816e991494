import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Holding } from '../../admission/bytes-in-flight.ts';
import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Answer } from '../operation/operation.ts';

/** `receivedEncodedLength` is the size before decompression. */
export type Payload = Readable & { readonly receivedEncodedLength?: number };

/**
 * Memory is reserved before it is allocated: all of it up front if there is a Content-Length, and otherwise as the body
 * grows. Chunks are copied into one buffer, because a one-byte chunk occupies hundreds of bytes.
 */
export function readBody(
  headers: IncomingHttpHeaders,
  payload: Payload,
  bytesMax: number,
  holding: Holding,
): Promise<Buffer> {
  const announced = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  return new Promise((resolve, reject) => {
    if ((announced ?? 0) > bytesMax) throw new RequestError('body_too_large');
    let body = roomFor(announced ?? limits.bodyBytesAtFirst, holding);
    let length = 0;
    const end = (error?: Error) => {
      payload.off('data', take).off('end', end).off('error', end).off('close', end);
      if (error) {
        payload.pause();
        return reject(asClientFault(error));
      }
      // This also runs if the connection was closed early.
      const sent = payload.receivedEncodedLength || length;
      if (!payload.readableEnded || (announced !== undefined && sent !== announced))
        return reject(new RequestError('malformed_request'));
      resolve(body.subarray(0, length));
    };
    const take = (chunk: Buffer) => {
      try {
        const needed = length + chunk.length;
        if (needed > bytesMax) throw new RequestError('body_too_large');
        if (needed > body.length) {
          const larger = roomFor(Math.min(bytesMax, Math.max(needed, 2 * body.length)), holding);
          body.copy(larger, 0, 0, length);
          body = larger;
        }
        chunk.copy(body, length);
        length = needed;
      } catch (error) {
        end(error as Error);
      }
    };
    payload.on('data', take).on('end', end).on('error', end).on('close', end).resume();
  });
}

/**
 * If the connection were closed while the client is still sending, it would see a broken connection instead of the
 * response. Compressed data is not decompressed, so a decompression bomb expands no further.
 */
export async function discardRest(raw: IncomingMessage, payload: Readable): Promise<void> {
  if (payload !== raw) raw.unpipe();
  if (!raw.readableEnded && !raw.destroyed) await untilEnded(raw);
  if (payload !== raw) payload.destroy();
}

function untilEnded(raw: IncomingMessage): Promise<void> {
  let left = limits.discardedBytesMax;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limits.discardMs);
    raw
      .on('data', (chunk: Buffer) => {
        left -= chunk.length;
        if (left < 0) resolve();
      })
      .once('end', resolve)
      .once('error', () => resolve())
      .once('close', () => {
        clearTimeout(timer);
        resolve();
      })
      .resume();
  });
}

function roomFor(bytes: number, holding: Holding): Buffer {
  holding.grow(bytes);
  return Buffer.allocUnsafe(bytes);
}

function asClientFault(error: Error): Error {
  return error instanceof RequestError || 'statusCode' in error
    ? error
    : new RequestError('malformed_request', { cause: error });
}

export function isStreamed(body: Answer['body']): body is AsyncIterable<Buffer> {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/**
 * Each chunk is produced once the previous one has been consumed. The first one is produced before anything is sent, so
 * an error in it still gets an ordinary error response. A later error breaks the connection, so that a client cannot
 * mistake a partial body for a complete one.
 */
export async function streamOf(
  body: AsyncIterable<Buffer>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Readable> {
  const pieces = body[Symbol.asyncIterator]();
  const { trace } = request;
  // An export can run any number of statements, so the trace contains only the statements for the first chunk.
  const first = await (trace ? trace.within(() => pieces.next()) : pieces.next());
  if (request.method === 'HEAD') {
    await pieces.return?.();
    // Without a stream, the framework would send a `Content-Length` of 0.
    return Readable.from([]);
  }
  return Readable.from(sendable(first, pieces, request, reply));
}

async function* sendable(
  first: IteratorResult<Buffer>,
  pieces: AsyncIterator<Buffer>,
  request: FastifyRequest,
  reply: FastifyReply,
): AsyncGenerator<Buffer> {
  const next = () =>
    pieces.next().catch((error: unknown) => {
      request.log.error({ err: error }, 'an answer broke off');
      throw error;
    });
  try {
    for (let piece = first; !piece.done; piece = await next()) {
      if (piece.value.length > 0) yield piece.value;
      // There is nothing to send yet, but the work continues, so reset the idle timeout.
      else reply.raw.setTimeout(request.server.server.timeout);
    }
  } finally {
    await pieces.return?.();
  }
}
