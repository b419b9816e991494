import type { Answer, Call } from './call.ts';
import { IntakeError, isObject, isUnstored, unknownOutcome } from './errors.ts';
import type { components } from './generated/api.ts';
import { limits } from './limits.ts';

type RecordCode = components['schemas']['RecordError']['code'];

interface Batch {
  readonly status: number;
  readonly data: { readonly error: string; readonly errors?: readonly { readonly code: RecordCode }[] };
}

/** Returns the batches in the response to an upload or a replay, no matter which status the response has. */
export function batchesOf(answer: Answer | IntakeError): readonly Batch[] | undefined {
  if (answer instanceof IntakeError || !isObject(answer.body)) return undefined;
  const { batches } = answer.body;
  return Array.isArray(batches) && batches.every(isBatch) ? batches : undefined;
}

function isBatch(value: unknown): value is Batch {
  return isObject(value) && isObject(value.data) && Array.isArray(value.data.errors ?? []);
}

/** Returns whether the service refuses an erasure until it has carried out earlier ones. */
export function isOfErasures({ code, status }: IntakeError): boolean {
  return status === 409 && code === 'too_many_erasures';
}

const passing = new Set([408, 429, 500, 502, 503, 504]);

/** Returns whether something other than Intake, such as a proxy, reports a success, or answers another request. */
export function isForeign(answer: Answer | IntakeError, { code }: IntakeError): boolean {
  if (answer instanceof IntakeError || code !== 'unexpected_answer') return false;
  return answer.status < 300 || batchesOf(answer) !== undefined;
}

/** Returns whether this attempt may have stored something that its answer does not report as stored. */
export function mayBeStored(outcome: Answer | IntakeError, error: IntakeError): boolean {
  const batches = batchesOf(outcome);
  if (!batches || error.code === 'unexpected_answer') return !isUnstored(error);
  const unknown: RecordCode = 'outcome_unknown';
  return batches.some(({ data: { errors } }) => !errors || errors.some(({ code }) => code === unknown));
}

/**
 * Adds the batches that this answer reports as processed to those of earlier attempts. Returns whether the answer reports one
 * of the earlier ones as not stored, which an attempt without a database does.
 */
export function takesBack(processed: Set<number>, outcome: Answer | IntakeError): boolean {
  const batches = batchesOf(outcome) ?? [];
  const isTakenBack = batches.some(({ status }, at) => status === 500 && processed.has(at));
  for (const [at, { status }] of batches.entries()) if (status !== 500) processed.add(at);
  return isTakenBack;
}

/** Returns the error to throw after the last attempt. */
export function final(error: IntakeError, { headers, path }: Call, isUnknown: boolean): IntakeError {
  if (!isUnknown) return error;
  const key = headers?.['idempotency-key'];
  return unknownOutcome(error, key === undefined ? [] : [key], path !== '/user-interactions');
}

/** How long a request is retried. Retries are timed on a clock that does not jump. */
export class Deadline {
  readonly #retryForMs: number;
  readonly #resendUntilMs: number;
  readonly #isKeyed: boolean;
  readonly #startedMs = performance.now();
  readonly #startedAtMs = Date.now();
  #failingSinceMs: number | undefined;

  constructor(retryForMs: number, { resendUntilMs, headers }: Call) {
    this.#retryForMs = retryForMs;
    this.#resendUntilMs = resendUntilMs ?? Infinity;
    this.#isKeyed = headers?.['idempotency-key'] !== undefined;
  }

  /** Returns whether another attempt may start after `waitMs`. */
  allows(waitMs: number, error: IntakeError): boolean {
    const nextMs = performance.now() + waitMs;
    this.#failingSinceMs ??= performance.now();
    const retryForMs = this.#retryForMs * (isOfErasures(error) ? limits.erasureRetryFactor : 1);
    return nextMs - this.#failingSinceMs <= retryForMs && !this.isOver(waitMs);
  }

  /**
   * Returns whether the service may have forgotten the Idempotency-Key after `waitMs`, because a day has passed. A clock that
   * does not jump may stop while the computer sleeps, and the other one may be set back, so both are asked.
   */
  isOver(waitMs = 0): boolean {
    const nowMs = Date.now() + waitMs;
    const agesMs = [performance.now() + waitMs - this.#startedMs, nowMs - this.#startedAtMs];
    return nowMs > this.#resendUntilMs || (this.#isKeyed && Math.max(...agesMs) > limits.keptForMs);
  }
}

export function mayRetry(error: IntakeError, repeatable: boolean): boolean {
  const { code, status, details } = error;
  // A retry would use the same wrong key, and each attempt prolongs the wait.
  if (code === 'too_many_failed_keys') return false;
  // The request exceeds the limit on its own, so waiting does not help.
  if (details.some((detail) => detail.code === 'too_many_records')) return false;
  if (isOfErasures(error) || status === 429 || (status === 503 && code !== 'unexpected_answer')) return true;
  return repeatable && (status === null || passing.has(status));
}

/** Returns the wait that the response asks for: a number of seconds, or a date, which is compared with the sender's clock. */
export function retryAfterOf({ headers }: Answer): number {
  const asked = headers.get('retry-after') ?? '';
  const seconds = Number(asked);
  if (seconds > 0) return seconds * 1000;
  const sentMs = Date.parse(headers.get('date') ?? '');
  const waitMs = Date.parse(asked) - (Number.isNaN(sentMs) ? Date.now() : sentMs);
  return waitMs > 0 ? waitMs : 0;
}
