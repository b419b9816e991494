import type { components } from './generated/api.ts';
import { errorCodes } from './generated/resources.ts';

type ServiceError = components['schemas']['Error'];

/**
 * The service's error codes, and the client's own codes: no response, a response that is not from Intake, a closed client,
 * a replay that waited too long for another replay, and a lake that is empty or still being copied.
 */
export type ErrorCode =
  | ServiceError['code']
  | 'connection_failed'
  | 'unexpected_answer'
  | 'closed'
  | 'replay_running'
  | 'lake_incomplete';

/** A request that failed as a whole. Use `code` in programs; `message` is for people. */
export class IntakeError extends Error {
  override readonly name = 'IntakeError';
  readonly code: ErrorCode;
  /** The HTTP status, or null if there was no response. */
  readonly status: number | null;
  /** The request's id. Include it when you ask the operator for help. */
  readonly requestId: string | null;
  /** With `missing_permission`: the permission that the key lacks. */
  readonly permission: string | undefined;
  /** With `invalid_request`: each invalid field or parameter. */
  readonly details: readonly components['schemas']['ErrorDetail'][];
  /** `unknown` if the request may have been carried out, because an attempt to send it had no certain answer. */
  readonly outcome: 'failed' | 'unknown';
  /** The keys of the requests whose outcome is unknown. `intake.requests.list({ idempotency_key })` finds what is stored. */
  readonly idempotencyKeys: readonly string[];

  constructor(
    code: ErrorCode,
    message: string,
    status: number | null = null,
    requestId: string | null = null,
    body: Partial<ServiceError> = {},
    unknownKeys?: readonly string[],
  ) {
    super(message);
    this.outcome = unknownKeys ? 'unknown' : 'failed';
    this.idempotencyKeys = unknownKeys ?? [];
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.permission = body.permission;
    this.details = Array.isArray(body.details) ? body.details.filter(isObject) : [];
  }
}

/** Creates the error for a response, whether the response came from Intake or from something in between, such as a proxy. */
export function errorOf(status: number, requestId: string | null, body: unknown): IntakeError {
  if (isServiceError(body)) return new IntakeError(body.code, body.message, status, requestId, body);
  const message = `Something other than Intake, or a newer version of it, answered with status ${status}. Check the address and any proxy.`;
  return new IntakeError('unexpected_answer', message, status, requestId);
}

/**
 * Creates the error for a response that Intake never sends. Either the address is wrong, or something in between, such as a
 * proxy, changes the responses.
 */
export function unexpected(what: string, status: number | null = null): IntakeError {
  return new IntakeError('unexpected_answer', `${what}. Check the address and any proxy.`, status);
}

/** No connection was made, so the service has not received the request. */
export class NoConnectionError extends IntakeError {
  constructor(message: string) {
    super('connection_failed', message);
  }
}

const refusals: ReadonlySet<ErrorCode> = new Set([
  'unauthorized',
  'missing_permission',
  'origin_not_allowed',
  'organisation_suspended',
  'organisation_deleted',
  'quota_exceeded',
  'https_required',
  'too_many_failed_keys',
]);

/** Returns whether Intake itself refused the sender, which happens before it stores anything from the request. */
export function isRefusal(error: unknown): boolean {
  return error instanceof IntakeError && refusals.has(error.code);
}

/** The codes of errors that do not show whether something is stored. Intake sends all others before it stores anything. */
const uncertain: ReadonlySet<ErrorCode> = new Set([
  'unexpected_answer',
  'idempotency_key_reused',
  'internal',
  'outcome_unknown',
]);

/** Returns whether the failed attempt certainly stored nothing. Only Intake's own answer, or no connection, proves this. */
export function isUnstored(error: IntakeError): boolean {
  return error.status === null ? error instanceof NoConnectionError : !uncertain.has(error.code);
}

/**
 * Returns the error with an unknown outcome. `keys` are the Idempotency-Keys of the requests that may be stored. A single
 * interaction has no receipt.
 */
export function unknownOutcome(error: IntakeError, keys: readonly string[], hasReceipt = true): IntakeError {
  const [first] = keys;
  const more = keys.length > 1 ? `, and for ${keys.length - 1} more in idempotencyKeys` : '';
  const where =
    hasReceipt && first !== undefined
      ? `GET /v1/requests?idempotency_key=${encodeURIComponent(first)} shows whether it is stored${more}`
      : 'Check whether it is there before you send it again';
  return withUnknown(error, `the request may be stored. ${where}.`, keys);
}

/**
 * Returns the error for an upload that failed after some of its requests were answered. `keys` are the Idempotency-Keys of
 * the answered requests, whose outcomes the caller will not see.
 */
export function partlyStored(
  error: IntakeError,
  {
    name,
    stored,
    keys,
    untilMs,
    nowMs,
  }: {
    readonly name: string;
    readonly stored: number;
    readonly keys: readonly string[];
    /** The service's time when it may have forgotten the first request, and its time now. */
    readonly untilMs: number;
    readonly nowMs: number;
  },
): IntakeError {
  const records = `${stored} ${stored === 1 ? 'record' : 'records'}`;
  const until = new Date(untilMs).toISOString();
  const next =
    nowMs < untilMs
      ? `To continue, upload the same records before ${until} with the name ${name}; nothing is stored twice.`
      : `The service may have forgotten the first request since ${until}, so interactions could be stored twice if they are uploaded again, even with the name ${name}.`;
  return withUnknown(error, `${records} of earlier requests are stored, and others may be. ${next}`, [
    ...keys,
    ...error.idempotencyKeys,
  ]);
}

function withUnknown(error: IntakeError, known: string, keys: readonly string[]): IntakeError {
  const { code, status, requestId, permission, details } = error;
  const said = error.message
    .replace(/ Nothing was stored\.$/, '')
    .replace(/ The outcome is unknown: .*$/s, '');
  return new IntakeError(
    code,
    `${said} The outcome is unknown: ${known}`,
    status,
    requestId,
    { ...(permission !== undefined && { permission }), details: [...details] },
    keys,
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Returns whether this is a response to a browser key. Such a response reports only invalid interactions. */
export function isAccepted(body: unknown): body is components['schemas']['Accepted'] {
  return (
    isObject(body) &&
    Number.isInteger(body.accepted) &&
    Array.isArray(body.errors) &&
    body.errors.every((error) => isObject(error) && Number.isInteger(error.index))
  );
}

const known: ReadonlySet<unknown> = new Set(errorCodes);

/** Returns whether the body is an error of the service. Gateways have other codes, but often the same form. */
function isServiceError(body: unknown): body is ServiceError {
  return isObject(body) && known.has(body.code) && typeof body.message === 'string';
}

/**
 * Returns whether the request has to be split, because it is too large for this service, whose operator may have set lower
 * limits than the API description states. A request that may be stored is never split: its parts would be stored again.
 */
export function mustSplit(error: unknown): error is IntakeError {
  return error instanceof IntakeError && error.outcome === 'failed' && isTooLarge(error);
}

export function isTooLarge(error: IntakeError): boolean {
  return error.code === 'body_too_large' || error.details.some(({ code }) => code === 'too_many_records');
}
