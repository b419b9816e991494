import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from '../operation/operation.ts';

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
