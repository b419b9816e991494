import { randomUUIDv7 } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { RequestError, type RequestErrorCode } from '../../errors.ts';
import { causeOf } from '../../postgres/loggable-error.ts';
import { isDiskFull, isLockTimeout, isUnavailable } from '../../postgres/pool.ts';
import { CommitUnconfirmed } from '../../postgres/transactions.ts';

// See errors.ts for why this is not an import.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** All other client errors from Fastify and its plugins become `malformed_request`. */
const frameworkCodes: Readonly<Record<string, RequestErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_CP_ERR_INVALID_CONTENT_ENCODING: 'unsupported_encoding',
  FST_CP_ERR_INVALID_CONTENT: 'malformed_encoding',
};

function asRequestError(error: unknown, request: FastifyRequest): RequestError {
  if (error instanceof RequestError) return error;
  if (isUnavailable(error)) return unavailable(error);
  // A read request may commit a transaction as well, because it assigns numbers to the changes it finds. The client does
  // not need to know whether that happened.
  if (error instanceof CommitUnconfirmed && !stores(request)) return unavailable(error.cause);
  const { code, statusCode = 500 } = error as Partial<FastifyError>;
  const known = frameworkCodes[code ?? ''];
  if (known) return new RequestError(known, { cause: error });
  return new RequestError(statusCode < 500 ? 'malformed_request' : 'internal', { cause: error });
}

function unavailable(cause: unknown): RequestError {
  const problem = isDiskFull(cause)
    ? 'The disk of the database is full, and the operator has to free space'
    : isLockTimeout(cause)
      ? 'The database is held up by another session'
      : undefined;
  return new RequestError('database_unavailable', { ...(problem && { problem }), cause });
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refused = asRequestError(error, request);
  const { line } = request;
  if (line) {
    line.code = refused.code;
    if (refused.cause !== undefined && refused.code === 'database_unavailable')
      line.cause = causeOf(refused.cause);
  }
  // A client error is explained in the response itself. An unexpected error is logged with its stack.
  if (refused.status === 500 || refused.code === 'lake_unavailable')
    request.log.error({ err: refused.cause ?? error }, refused.message);
  reply
    .code(refused.status)
    .headers(refused.headers)
    .send(refused.body({ stores: stores(request) }));
}

/** Requests that store nothing are safe to retry. */
function stores({ method, url, is404 }: FastifyRequest): boolean {
  return (method === 'POST' || method === 'PATCH') && !is404 && !/[?&]dry_run=true/.test(url);
}

/** The input is not HTTP or arrived too late, so there is a socket, but no request that could be answered. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const codes: Record<string, RequestErrorCode> = {
    HPE_HEADER_OVERFLOW: 'headers_too_large',
    ERR_HTTP_REQUEST_TIMEOUT: 'timed_out',
  };
  refuseOn(socket, new RequestError(codes[error.code ?? ''] ?? 'malformed_request'));
}

/** CONNECT asks for a tunnel. Node passes only the socket, without its usual listeners. */
export function refuseConnect(socket: Socket): void {
  socket.on('error', () => {});
  const message = 'This server is not a proxy; send the request to its own address.';
  refuseOn(socket, new RequestError('method_not_allowed', { message, headers: { allow: '' } }));
  // Close the socket without waiting for data that the client has sent for the tunnel.
  socket.resume().destroySoon();
}

function refuseOn(socket: Socket, refused: RequestError): void {
  const body = JSON.stringify(refused.body());
  const headers = { ...lastHeaders(), ...refused.headers, 'content-length': Buffer.byteLength(body) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n${lines.join('')}\r\n${body}`);
}

/**
 * The headers of error responses that are sent outside the framework's hooks. The connection closes, because the
 * framing of the remaining bytes is unknown.
 */
export function lastHeaders(requestId: string = randomUUIDv7()): Record<string, string> {
  return {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-request-id': requestId,
    connection: 'close',
  };
}
