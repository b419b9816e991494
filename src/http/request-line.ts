import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { LoggedCounts } from '../uploads/answer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined where an address could not be decoded: such a request skips the hooks. */
    line: RequestLine | undefined;
  }
}

/**
 * What the log says of a request, beside its id: one object, filled in as things become known. Names and words are those
 * of the API. Nothing that was sent is in it: not the address, whose query may hold what identifies a person, and of the
 * body no more than its size. The client's address is there, for an operator has to know who it was that knocked.
 */
export interface RequestLine {
  operation_id: string | undefined;
  /** Of what is no operation, such as the reference or a method that is not taken: the pattern, not the address. */
  readonly route: string | undefined;
  readonly method: string | undefined;
  organisation_id: string | undefined;
  key_id: string | undefined;
  readonly client_address: string | undefined;
  /** Once decompressed. */
  body_bytes: number | undefined;
  dry_run: true | undefined;
  counts: LoggedCounts | undefined;
  status: number;
  /** The code of the error, and where it is the database's, what the driver or PostgreSQL calls it. */
  code: string | undefined;
  cause: string | undefined;
  duration_ms: number;
}

export function beginLine(request: FastifyRequest, isBehindProxy: boolean): RequestLine {
  const { routeOptions, ip } = request;
  const { operation } = routeOptions.config;
  return {
    operation_id: operation?.id,
    route: operation ? undefined : routeOptions.url,
    method: operation ? undefined : request.method,
    organisation_id: undefined,
    key_id: undefined,
    // Now, for a socket that is closed has none. What a proxy passes on may be anything.
    client_address: isBehindProxy && isIP(ip) === 0 ? undefined : ip,
    body_bytes: undefined,
    dry_run: undefined,
    counts: undefined,
    status: 0,
    code: undefined,
    cause: undefined,
    duration_ms: 0,
  };
}

export function endLine({ line, log }: FastifyRequest, reply: FastifyReply): void {
  if (!line) return;
  line.status = reply.statusCode;
  line.duration_ms = Math.round(reply.elapsedTime);
  // Whoever watches over the process asks every few seconds.
  if (line.operation_id?.startsWith('health-')) log.debug(line, 'answered');
  else if (line.status >= 500) log.warn(line, 'answered');
  else log.info(line, 'answered');
}
