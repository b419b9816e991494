import { limits } from './limits.ts';

// An import of node:http as a module also loads undici, which takes 0.06 s of CPU time, a third of a command's start.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

type Row = readonly [status: number, problem: string, remedy: string];

const retryLater =
  'wait for the number of seconds in Retry-After and send the request again, doubling the wait each time';

/** Errors of both APIs. Clients depend on the codes, so a published code must not be renamed. */
const onEitherApi = {
  malformed_request: [
    400,
    'The request is not well-formed HTTP',
    'check its request line, headers and address',
  ],
  malformed_json: [400, 'The body is not valid JSON', 'send one JSON object'],
  malformed_utf8: [400, 'The body is not valid UTF-8', 'encode it as UTF-8 and send it again'],
  malformed_encoding: [400, 'The body does not decompress', 'check that it matches its Content-Encoding'],
  nested_too_deeply: [400, 'The body is nested too deeply', 'send a flat object'],
  invalid_request: [
    400,
    'The request has an invalid field or parameter',
    'correct each field or parameter listed in details',
  ],
  https_required: [403, 'The request did not arrive over HTTPS', 'use the https:// address'],
  not_found: [404, 'There is nothing at this address', 'the API reference lists all operations'],
  method_not_allowed: [
    405,
    'This address does not support that method',
    'use a method listed in the Allow header',
  ],
  timed_out: [408, 'The request took too long to arrive', 'send it again'],
  body_too_large: [
    413,
    'The body is too large, as sent or once decompressed',
    'split it into several requests',
  ],
  unsupported_media_type: [
    415,
    'The body is not declared as JSON',
    'send it with "Content-Type: application/json"',
  ],
  unsupported_encoding: [
    415,
    'The compression of the body is not supported',
    'use gzip, br, zstd, deflate or no compression',
  ],
  expectation_failed: [
    417,
    'The expectation cannot be met',
    'remove the Expect header, or send "Expect: 100-continue"',
  ],
  too_many_failed_keys: [
    429,
    'Too many requests with a wrong key or token came from this address',
    'check it, then wait for the number of seconds in Retry-After',
  ],
  too_many_requests: [
    429,
    'Too many requests, records or bytes were sent in a short time',
    'wait for the number of seconds in Retry-After, then send less at a time',
  ],
  headers_too_large: [431, 'The address and the headers are too large', 'shorten them'],
  internal: [
    500,
    'Something went wrong on our side',
    'send the request again, and report its X-Request-Id if it persists',
  ],
  database_unavailable: [503, 'The database cannot be reached at the moment', retryLater],
  schema_behind: [
    503,
    'The database schema is behind this version',
    'the operator has to run intake-server migrate',
  ],
  schema_ahead: [
    503,
    'The database schema is ahead of this version and no longer works with it',
    'the operator has to run a newer intake-server',
  ],
  stalled: [
    503,
    'Writing has stalled',
    'the operator has to end the session that blocks it, as described in message',
  ],
  overloaded: [503, 'The service is overloaded', retryLater],
  shutting_down: [
    503,
    'This process is stopping',
    'send the request again on a new connection, and another process will handle it',
  ],
} as const satisfies Record<string, Row>;

const onPublicApi = {
  unauthorized: [401, 'The API key is invalid or missing', 'send it as "Authorization: Bearer <API_KEY>"'],
  missing_permission: [
    403,
    'The API key does not have the required permission',
    'ask the operator for a key with the permission shown in permission',
  ],
  origin_not_allowed: [
    403,
    'This browser key cannot be used from this origin',
    'send the request from a page on one of its origins, or ask the operator for a key for this origin',
  ],
  organisation_suspended: [
    403,
    'The organisation is suspended, and its keys can neither read nor write',
    'ask the operator of the service',
  ],
  organisation_deleted: [
    410,
    'The organisation was deleted, and its keys can neither read nor write',
    'ask the operator of the service, who can restore it for some time',
  ],
  quota_exceeded: [
    403,
    'The organisation has used up its quota',
    'ask the operator of the service for a larger quota, or to keep interactions for fewer days; until then, the same request will fail again',
  ],
  unknown_type: [404, 'There is no such record type', 'use one that the API reference lists'],
  record_not_found: [404, 'There is no record of this type with this id', 'check the id and the type'],
  receipt_not_found: [
    404,
    'There is no receipt with this request id',
    'check the id; dry runs and requests that failed as a whole have no receipt, and old receipts are deleted',
  ],
  run_not_found: [
    404,
    'There is no run with this id',
    'open one with POST /v1/runs; runs are deleted with old receipts',
  ],
  interaction_not_found: [404, 'There is no interaction with this id', 'check the id'],
  erasure_not_found: [404, 'There is no erasure with this id', 'check the id'],
  erasure_not_swept: [
    409,
    'The erasure is still being carried out',
    'wait until its state is swept and its lake is not pending, and send the request again',
  ],
  too_many_erasures: [
    409,
    `The organisation has ${limits.openErasureIdsMax.toLocaleString('en')} ids in erasures that are still being carried out`,
    'wait for the number of seconds in Retry-After and send the request again, until earlier erasures are swept',
  ],
  run_ended: [
    409,
    'The run has ended, and nothing was stored',
    'open another run with POST /v1/runs for what is not stored yet',
  ],
  file_uploaded: [
    409,
    'A file of interactions was uploaded before, so uploading it again would store each of them twice',
    'to continue the earlier run, name it in your requests; if it failed, end it as failed; to store the interactions again, send "again": true',
  ],
  too_many_runs: [
    409,
    `The organisation has opened ${limits.openRunsMax} runs within 24 hours that have not ended`,
    'end runs when their files are sent, with POST /v1/runs/{run_id}/end',
  ],
  access_request_not_found: [404, 'There is no access request with this id', 'check the id'],
  access_request_expired: [
    404,
    'The records of this access request were deleted after 7 days',
    'request them again',
  ],
  access_request_cancelled: [
    404,
    'The access request was cancelled, and its records are deleted',
    'request them again',
  ],
  access_request_not_done: [
    409,
    'The records of this access request are still being collected',
    'wait until its state is done, and send the request again',
  ],
  too_many_access_requests: [
    409,
    'The organisation has too many unfinished access requests, or they have collected too many records',
    'wait until some are done or have expired, or cancel some',
  ],
  report_off: [
    409,
    'The report on recommendations is switched off for this organisation',
    'ask the operator to switch it on: intake-server organisations set-report <slug> on',
  ],
  lake_off: [
    409,
    'The organisation has no lake',
    'ask the operator to switch it on: intake-server organisations set-lake <slug> on',
  ],
  lake_table_not_found: [
    404,
    'There is no such table in the lake, or nothing has been written to it yet',
    'use one that GET /v1/lake lists with a version',
  ],
  lake_file_not_found: [
    404,
    'This file is not part of the newest version of the table',
    'list the files again: files are merged, and old ones deleted',
  ],
  lake_version_gone: [
    410,
    'The table has changed since the first page of this list',
    'list its files again from the first page',
  ],
  range_not_satisfiable: [
    416,
    'The Range header is not a single range of bytes within the file',
    'request one range, such as "Range: bytes=0-99", within the size that Content-Range states',
  ],
  cursor_too_old: [
    410,
    'The changes after this cursor are no longer kept, or the database has lost changes before it',
    'empty your copy, export what you need as NDJSON, and continue from the cursor in the Changes-Cursor header of the first export',
  ],
  idempotency_key_reused: [
    422,
    'This Idempotency-Key was used with another body',
    'use a new key for a new request',
  ],
  erasure_not_configured: [
    501,
    'This service has no keys for erasing people',
    'the operator has to set ERASURE_KEYS',
  ],
  clock_differs: [
    503,
    'The clock of this process differs from the clock of the database',
    'the operator has to correct the one that is wrong',
  ],
  database_unsafe: [
    503,
    'PostgreSQL may lose data that it has confirmed',
    'the operator has to turn on the settings shown in message',
  ],
  out_of_descriptors: [
    503,
    'This process has no file descriptor left, so it drops new connections',
    'the operator has to raise its limit of open files (LimitNOFILE, ulimit -n), or start more processes',
  ],
  erasure_key_missing: [
    503,
    'This process lacks a key that ids of erased people were hashed with',
    'the operator has to add the key with the fingerprint shown in message to ERASURE_KEYS of this process',
  ],
  lake_not_configured: [
    501,
    'This service has no lake',
    'the operator has to set LAKE_URL for intake-server serve, as for intake-server lake',
  ],
  lake_unavailable: [503, 'The files of the lake cannot be read at the moment', retryLater],
  outcome_unknown: [
    500,
    'The interaction may or may not have been stored',
    'if it has an Idempotency-Key, send it again; otherwise, check first whether it is stored',
  ],
} as const satisfies Record<string, Row>;

const onAdminApi = {
  admin_unauthorized: [
    401,
    'The admin token is missing, wrong, revoked or expired',
    'send a token that intake-server tokens issue has printed, as "Authorization: Bearer <token>"',
  ],
  read_only_token: [403, 'This admin token may only read', 'use a token that was issued without --read-only'],
  organisation_not_found: [404, 'There is no organisation with this slug', 'check the slug'],
  key_not_found: [404, 'There is no active key with this id', 'check the id'],
  slug_taken: [409, 'An organisation with this slug already exists', 'choose another slug'],
  organisation_is_deleted: [
    409,
    'The organisation is deleted, and can only be restored',
    'restore it first: intake-server organisations restore <slug>',
  ],
  removal_begun: [
    409,
    'The removal of the organisation has begun, so it can no longer be restored',
    'create it again when it is gone from the list',
  ],
} as const satisfies Record<string, Row>;

/** These errors are not part of the published APIs, because only the console's own pages receive them. */
const onConsole = {
  not_signed_in: [401, 'Nobody is signed in, or the session has ended', 'sign in again'],
  link_not_usable: [
    401,
    'This link has already been used, or is too old',
    'ask the operator for another link, or sign in with a key',
  ],
  token_not_usable: [
    401,
    'This is not an admin token, or it is revoked or expired',
    'use a token that intake-server tokens issue has printed; it begins with intake_admin_',
  ],
  browser_key: [403, 'This key is for web pages and may only record interactions', 'use another key'],
  other_page: [
    403,
    'The request came from another page',
    'use the console; behind a proxy, its operator has to forward Host and X-Forwarded-Proto',
  ],
  two_sessions: [
    400,
    'The browser has sent two sessions, and one of them may be forged',
    'delete the cookies of this site, then sign in again',
  ],
  other_session: [
    409,
    'This browser has signed in with another key or token since this page was opened',
    'reload the page',
  ],
  other_organisation: [
    409,
    'This browser is signed in to another organisation',
    'the link replaces that session only if you agree',
  ],
} as const satisfies Record<string, Row>;

/** The console uploads with the client library, which must know these codes as the service's own. */
export const consoleErrorCodes: readonly string[] = Object.keys(onConsole);

const table = { ...onEitherApi, ...onPublicApi, ...onAdminApi, ...onConsole };

export type RequestErrorCode = keyof typeof table;

export type ApiName = 'public' | 'admin';

export const errorTables: Readonly<Record<ApiName, Readonly<Record<string, Row>>>> = {
  public: { ...onEitherApi, ...onPublicApi },
  admin: { ...onEitherApi, ...onAdminApi },
};

export interface Detail {
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

/** Codes for problems with parts of a request other than record fields, which have their own codes. */
export const requestProblemCodes = [
  'unknown_field',
  'unknown_parameter',
  'repeated_parameter',
  'not_combinable',
  'too_many_records',
  'file_uploaded',
  'too_large',
] as const;

interface ErrorBody {
  readonly error: string;
  readonly code: RequestErrorCode;
  readonly message: string;
  readonly permission?: string;
  readonly details?: readonly Detail[];
}

/** The only kind of error whose message is sent to a client. */
export class RequestError extends Error {
  readonly code: RequestErrorCode;
  readonly status: number;
  readonly permission: string | undefined;
  readonly details: readonly Detail[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: RequestErrorCode,
    options: {
      permission?: string;
      details?: readonly Detail[];
      headers?: Record<string, string>;
      message?: string;
      /** A more specific description of the problem than the code's default. The remedy stays the same. */
      problem?: string;
      cause?: unknown;
    } = {},
  ) {
    const [status, problem, remedy] = table[code];
    super(options.message ?? `${options.problem ?? problem}; ${remedy}.`, { cause: options.cause });
    this.code = code;
    this.status = status;
    this.permission = options.permission;
    this.details = options.details;
    const isPassing = status === 429 || status >= 500 || code === 'too_many_erasures';
    this.headers = { ...(isPassing && retryAfter), ...options.headers };
  }

  /** If the client can retry a request that `stores` something, the message adds that nothing was stored. */
  body({ stores = false } = {}): ErrorBody {
    const retried = this.status === 429 || this.status === 503;
    return {
      error: STATUS_CODES[this.status] ?? 'Error',
      code: this.code,
      message: stores && retried ? `${this.message} Nothing was stored.` : this.message,
      ...(this.permission !== undefined && { permission: this.permission }),
      ...(this.details && { details: this.details }),
    };
  }
}

export const retryAfter = { 'retry-after': String(limits.retryAfterSeconds) };

/** The minimum of `Retry-After` is one second. */
export function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

export function invalidRequest(...details: readonly Detail[]): RequestError {
  return new RequestError('invalid_request', { details });
}
