import { randomUUIDv7 } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { RequestError, type RequestErrorCode } from '../errors.ts';
import { isUnavailable } from '../store/pool.ts';

/** What the framework and its plugins call a failure, and what we do. Whatever else they refuse is a bad request. */
const frameworkCodes: Readonly<Record<string, RequestErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_CP_ERR_INVALID_CONTENT_ENCODING: 'unsupported_encoding',
  FST_CP_ERR_INVALID_CONTENT: 'malformed_encoding',
};

/** Turns anything that was thrown into the one shape of error that clients see. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (isUnavailable(error)) return new RequestError('database_unavailable', { cause: error });
  const { code, statusCode = 500 } = error as Partial<FastifyError>;
  const known = frameworkCodes[code ?? ''];
  if (known) return new RequestError(known, { cause: error });
  return new RequestError(statusCode < 500 ? 'malformed_request' : 'internal', { cause: error });
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refused = asRequestError(error);
  // A client's mistake is its own affair and is in its answer; what is ours is in the log, with its cause.
  if (refused.status >= 500) request.log.error({ err: refused.cause ?? error }, refused.message);
  reply.code(refused.status).headers(refused.headers).send(refused.body());
}

/** What arrived was not HTTP, or not in time: there is no request to reply to, only a socket. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const codes: Record<string, RequestErrorCode> = {
    HPE_HEADER_OVERFLOW: 'headers_too_large',
    ERR_HTTP_REQUEST_TIMEOUT: 'timed_out',
  };
  const refused = new RequestError(codes[error.code ?? ''] ?? 'malformed_request');
  const body = JSON.stringify(refused.body());
  socket.end(
    `HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n` +
      `content-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${randomUUIDv7()}\r\nconnection: close\r\n\r\n${body}`,
  );
}
