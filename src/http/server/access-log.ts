import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../../limits.ts';
import type { LoggedCounts } from '../../uploads/answer/answer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined if the URL could not be decoded, because such a request skips the hooks. */
    line: RequestLine | undefined;
  }
}

/**
 * One object is filled in step by step. It contains nothing that the client sent: no URL, because the query may identify a
 * person, and only the body's size. Operators need the IP address to know where a request came from.
 */
interface RequestLine {
  operation_id: string | undefined;
  /** The route's pattern. Set only for requests that are not an operation, such as the reference page or a 405. */
  readonly route: string | undefined;
  readonly method: string | undefined;
  organisation_id: string | undefined;
  key_id: string | undefined;
  readonly client_address: string | undefined;
  /** The size after decompression. */
  body_bytes: number | undefined;
  dry_run: true | undefined;
  counts: LoggedCounts | undefined;
  status: number;
  /** `code` is the API's error code. For database errors, `cause` is the error code from the driver or from PostgreSQL. */
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
    // Read now, because a closed socket no longer has an address. Behind a proxy, the value may be any string.
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

export function lineEnder() {
  let recorded = 0;
  return ({ line, log }: FastifyRequest, reply: FastifyReply): void => {
    if (!line) return;
    line.status = reply.statusCode;
    line.duration_ms = Math.round(reply.elapsedTime);
    // Logging takes a tenth of the CPU time of an interaction, and there is nothing to report about a normal one.
    const isUsual =
      line.operation_id === 'record-interaction' &&
      line.status < 400 &&
      line.duration_ms < limits.slowInteractionMs &&
      recorded++ % limits.interactionsPerLogLine !== 0;
    // Health probes arrive every few seconds.
    if (isUsual || line.operation_id?.startsWith('health-')) log.debug(line, 'answered');
    else if (line.status >= 500) log.warn(line, 'answered');
    else log.info(line, 'answered');
  };
}
