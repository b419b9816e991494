import type { components } from './generated/api.ts';

type ServiceError = components['schemas']['Error'];

/**
 * The service's error codes, and the client's own codes: no response, a response that is not from Intake, a closed client,
 * and a replay that waited too long for another replay.
 */
export type ErrorCode =
  | ServiceError['code']
  | 'connection_failed'
  | 'unexpected_answer'
  | 'closed'
  | 'replay_running';

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

  constructor(
    code: ErrorCode,
    message: string,
    status: number | null = null,
    requestId: string | null = null,
    body: Partial<ServiceError> = {},
  ) {
    super(message);
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
  const message = `Something other than Intake answered with status ${status}. Check the address and any proxy.`;
  return new IntakeError('unexpected_answer', message, status, requestId);
}

/**
 * Creates the error for a response that Intake never sends. Either the address is wrong, or something in between, such as a
 * proxy, changes the responses.
 */
export function unexpected(what: string): IntakeError {
  return new IntakeError('unexpected_answer', `${what}. Check the address and any proxy.`);
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

/** Returns whether the failed attempt certainly stored nothing. */
export function isUnstored(error: unknown): boolean {
  return isRefusal(error) || error instanceof NoConnectionError;
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

function isServiceError(body: unknown): body is ServiceError {
  return isObject(body) && typeof body.code === 'string' && typeof body.message === 'string';
}

/**
 * Returns whether the request is too large for this service, whose operator may have set lower limits than the API
 * description states.
 */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof IntakeError)) return false;
  return error.code === 'body_too_large' || error.details.some(({ code }) => code === 'too_many_records');
}
