import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from './operation.ts';

export function isStreamed(body: Answer['body']): body is AsyncIterable<Buffer> {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/**
 * A body that is made while the client reads it: the next piece is asked for when the last one is on its way. The first
 * is made before anything is sent, so that what fails at once gets an ordinary answer. What fails later breaks the
 * connection off: a client must not take a part for the whole. Undefined where the client asked for the headers alone.
 */
export async function streamOf(
  body: AsyncIterable<Buffer>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Readable | undefined> {
  const pieces = body[Symbol.asyncIterator]();
  const { trace } = request;
  // An export can take any number of statements: its first piece stands for them in the trace.
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
  for (let piece = first; !piece.done; piece = await next()) {
    if (piece.value.length > 0) yield piece.value;
    // Nothing to send yet, but not for want of trying: the connection is not idle.
    else reply.raw.setTimeout(request.server.server.timeout);
  }
}
