import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from '../operation/operation.ts';

export function isStreamed(body: Answer['body']): body is AsyncIterable<Buffer> {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/**
 * Streams a body with back-pressure: the next chunk is made when the last one has been taken. The first is made before
 * anything is sent, so an error there gets an ordinary answer. A later error breaks the connection, so that a client
 * cannot take a part for the whole. Undefined for HEAD.
 */
export async function streamOf(
  body: AsyncIterable<Buffer>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Readable | undefined> {
  const pieces = body[Symbol.asyncIterator]();
  const { trace } = request;
  // An export can run any number of statements: the trace shows only those of the first chunk.
  const first = await (trace ? trace.within(() => pieces.next()) : pieces.next());
  if (request.method === 'HEAD') {
    await pieces.return?.();
    return undefined;
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
      // Nothing to send yet, but work goes on: resets the idle timeout.
      else reply.raw.setTimeout(request.server.server.timeout);
    }
  } finally {
    await pieces.return?.();
  }
}
