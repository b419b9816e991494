import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import { limits } from '../../limits.ts';
import type { LoggedCounts } from '../../uploads/answer/answer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined if the address could not be decoded: such a request skips the hooks. */
    line: RequestLine | undefined;
  }
}

/**
 * The log line of a request: one object, filled in as things become known, in the words of the API. It holds nothing
 * that was sent: not the address, whose query may identify a person, and only the size of the body. It has the client's
 * IP address, because an operator must know who sent the request.
 */
export interface RequestLine {
  operation_id: string | undefined;
  /** For requests that are no operation, such as the reference page or a 405: the route's pattern, not the address. */
  readonly route: string | undefined;
  readonly method: string | undefined;
  organisation_id: string | undefined;
  key_id: string | undefined;
  readonly client_address: string | undefined;
  /** After decompression. */
  body_bytes: number | undefined;
  dry_run: true | undefined;
  counts: LoggedCounts | undefined;
  status: number;
  /** `code` is the error code. `cause` is set for database errors: the code of the driver or of PostgreSQL. */
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
    // Read now, because a closed socket has no address. A proxy may pass on anything.
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

/** Makes the function that logs the line of a request once it is answered. */
export function lineEnder({ logInteractionsOneIn }: Pick<Config, 'logInteractionsOneIn'>) {
  let recorded = 0;
  return ({ line, log }: FastifyRequest, reply: FastifyReply): void => {
    if (!line) return;
    line.status = reply.statusCode;
    line.duration_ms = Math.round(reply.elapsedTime);
    // A line costs a tenth of an interaction's CPU, and an interaction that was recorded as usual has nothing to report.
    const isUsual =
      line.operation_id === 'record-interaction' &&
      line.status < 400 &&
      line.duration_ms < limits.slowInteractionMs &&
      recorded++ % logInteractionsOneIn !== 0;
    // Health probes come every few seconds.
    if (isUsual || line.operation_id?.startsWith('health-')) log.debug(line, 'answered');
    else if (line.status >= 500) log.warn(line, 'answered');
    else log.info(line, 'answered');
  };
}
