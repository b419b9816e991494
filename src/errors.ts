import { STATUS_CODES } from 'node:http';
import { limits } from './limits.ts';

/** Every way in which a whole request can fail: its status, and a sentence that says what to do. */
const table = {
  malformed_request: [
    400,
    'The request is not well-formed HTTP; check its request line, headers and address.',
  ],
  malformed_json: [400, 'The body is not valid JSON; send one JSON object.'],
  malformed_utf8: [400, 'The body is not valid UTF-8; encode it as UTF-8 and send it again.'],
  malformed_encoding: [400, 'The body does not decompress; check that it matches its Content-Encoding.'],
  nested_too_deeply: [400, 'The body is nested too deeply; send a flat object.'],
  invalid_request: [
    400,
    'The request cannot be taken as it is; details names each field and what to do about it.',
  ],
  unauthorized: [401, 'The API key is invalid or missing; send it as "Authorization: Bearer <API_KEY>".'],
  admin_unauthorized: [
    401,
    'The admin token is wrong or missing; send it as "Authorization: Bearer <ADMIN_TOKEN>".',
  ],
  forbidden: [403, 'The API key has no permission for this; ask the operator for a key that has.'],
  organisation_suspended: [
    403,
    'This organisation is suspended: nothing is taken from it and nothing given. Ask the operator of the service.',
  ],
  https_required: [403, 'The request did not arrive over HTTPS; use the https:// address.'],
  not_found: [404, 'There is nothing at this address; /docs lists what there is.'],
  unknown_type: [404, 'There is no such record type; /docs lists them.'],
  record_not_found: [404, 'There is no record of this type with this id.'],
  receipt_not_found: [
    404,
    'There is no receipt with this request id: nothing of such a request was stored, or it is too long ago.',
  ],
  interaction_not_found: [404, 'There is no interaction with this id.'],
  organisation_not_found: [404, 'There is no organisation with this slug.'],
  key_not_found: [404, 'There is no key with this id in use.'],
  slug_taken: [409, 'There is an organisation with this slug already; choose another.'],
  method_not_allowed: [405, 'This address does not take that method; Allow lists the ones it does.'],
  timed_out: [408, 'The request took too long to arrive; send it again.'],
  body_too_large: [
    413,
    'The body is too large, as sent or once decompressed; split it over several requests.',
  ],
  unsupported_media_type: [415, 'The body must be sent with "Content-Type: application/json".'],
  unsupported_encoding: [415, 'The body may be compressed with gzip, br, zstd or deflate, or not at all.'],
  expectation_failed: [417, 'The only expectation that can be met is "Expect: 100-continue".'],
  idempotency_key_reused: [
    422,
    'This Idempotency-Key was used with another body; use a new key for a new request.',
  ],
  too_many_failed_keys: [
    429,
    'Too many requests with a wrong key or token came from this address; check it, then wait as long as Retry-After says.',
  ],
  too_many_requests: [429, 'Too much was sent in a short time; send it again later.'],
  headers_too_large: [431, 'The headers are too large; send fewer or shorter ones.'],
  internal: [
    500,
    'Something went wrong on our side; send the request again, and report its X-Request-Id if it persists.',
  ],
  outcome_unknown: [
    500,
    'The interaction may or may not have been stored. With the same Idempotency-Key it is safe to send again; without one, look for it first.',
  ],
  database_unavailable: [
    503,
    'The database cannot be reached just now; nothing was stored. Send the request again.',
  ],
  schema_behind: [
    503,
    'The database schema is behind this version; the operator runs intake-server migrate.',
  ],
  overloaded: [
    503,
    'More is arriving than can be written just now; nothing was stored. Send the request again.',
  ],
  shutting_down: [503, 'This process is stopping; send the request again.'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type RequestErrorCode = keyof typeof table;

/** One named field of a request and what is wrong with it. */
export interface Detail {
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

export interface ErrorBody {
  readonly error: string;
  readonly message: string;
  readonly details?: readonly Detail[];
}

/** Thrown where a request as a whole is refused; the only error whose words reach a client. */
export class RequestError extends Error {
  readonly code: RequestErrorCode;
  readonly status: number;
  readonly details: readonly Detail[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: RequestErrorCode,
    options: {
      details?: readonly Detail[];
      headers?: Record<string, string>;
      message?: string;
      cause?: unknown;
    } = {},
  ) {
    const [status, message] = table[code];
    super(options.message ?? message, { cause: options.cause });
    this.code = code;
    this.status = status;
    this.details = options.details;
    this.headers = { ...(status >= 500 && retryAfter), ...options.headers };
  }

  body(): ErrorBody {
    return {
      error: STATUS_CODES[this.status] ?? 'Error',
      message: this.message,
      ...(this.details && { details: this.details }),
    };
  }
}

/** Whoever meets a failure of ours is told when to come back. */
export const retryAfter = { 'retry-after': String(limits.retryAfterSeconds) };

/** For `Retry-After`, which knows no less than a second. */
export function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
