import { limits } from './limits.ts';

const clockErrorMs = 3_600_000;

/**
 * Returns the time (ms since 1970) after which a request that was first sent at `startedMs` or later is not sent again, because
 * the service may have forgotten its Idempotency-Key. `startedAtMs` is the same moment on the clock that does not jump, if this
 * process was running then. That clock may stop while the computer sleeps, and the other one may be set back, so the larger age
 * counts. If the moment is in the future, its age is unknown, and the request is not sent at all.
 */
export function resendUntilMs(startedMs: number, startedAtMs = performance.now()): number {
  const nowMs = Date.now();
  const ageMs = nowMs - startedMs;
  if (ageMs < -clockErrorMs) return 0;
  return nowMs + limits.keptForMs - Math.max(ageMs, performance.now() - startedAtMs);
}
