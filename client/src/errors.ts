import type { components } from './generated/api.ts';

type ServiceError = components['schemas']['Error'];

/**
 * The codes of the service, and those of the client: no answer, one that is not Intake's, a client that was closed, another
 * replay that does not end.
 */
export type ErrorCode =
  | ServiceError['code']
  | 'connection_failed'
  | 'unexpected_answer'
  | 'closed'
  | 'replay_running';

/** A request that failed as a whole. Go by `code`; `message` is for people. */
export class IntakeError extends Error {
  override readonly name = 'IntakeError';
  readonly code: ErrorCode;
  /** HTTP status, or null where there was no answer. */
  readonly status: number | null;
  /** Name it when you ask the operator for help. */
  readonly requestId: string | null;
  /** With `missing_permission`: the one that the key lacks. */
  readonly permission: string | undefined;
  /** With `invalid_request`: each field or parameter that is wrong. */
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

/** Makes the error of an answer, whether Intake or something in between sent it. */
export function errorOf(status: number, requestId: string | null, body: unknown): IntakeError {
  if (isServiceError(body)) return new IntakeError(body.code, body.message, status, requestId, body);
  const message = `Something other than Intake answered with status ${status}. Check the address and any proxy.`;
  return new IntakeError('unexpected_answer', message, status, requestId);
}

/** An answer that no Intake gives: the address leads elsewhere, or something in between changes answers. */
export function unexpected(what: string): IntakeError {
  return new IntakeError('unexpected_answer', `${what}. Check the address and any proxy.`);
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

/** Whether Intake itself refused the sender, which it does before it stores anything of a request. */
export function isRefusal(error: unknown): boolean {
  return error instanceof IntakeError && refusals.has(error.code);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Whether it is an answer to a browser key, which says what is wrong with interactions and nothing else. */
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

/** Whether the service takes less at once, because its operator has set lower limits than the API description states. */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof IntakeError)) return false;
  return error.code === 'body_too_large' || error.details.some(({ code }) => code === 'too_many_records');
}
