import { limits } from '../../limits.ts';
import { isLockTimeout, isServerAway, isUnavailable } from '../pool.ts';

/**
 * Tracks write failures that the database server causes, for example because its disk is full. Failures of a single
 * organisation do not count, because its data may be the cause, unless the readiness check gets the same error. A failure
 * is considered over after a successful write. It is also considered over after a fixed time, because without traffic
 * there would be no successful write.
 */
export class ServerFailures {
  /** The organisations whose writes failed most recently, with the oldest failure first. */
  readonly #failed = new Map<string, { readonly error: unknown; readonly atMs: number }>();

  note(organisations: readonly string[], error: unknown): void {
    const cause = serverErrorOf(error);
    if (cause === undefined) return;
    const atMs = performance.now();
    for (const organisationId of organisations) {
      this.#failed.delete(organisationId);
      this.#failed.set(organisationId, { error: cause, atMs });
    }
    for (const [oldest] of this.#failed) {
      if (this.#failed.size <= limits.failedOrganisationsMin) break;
      this.#failed.delete(oldest);
    }
  }

  /** The readiness check got the same error, so the cause is not one organisation's data. */
  confirm(error: unknown): void {
    if (this.isSuspected) this.note([...this.#failed.keys(), 'readiness'], error);
  }

  clear(): void {
    this.#failed.clear();
  }

  /** The last error, if writes of several organisations have failed within a short time and none has succeeded since. */
  get error(): unknown {
    const recent = this.#recent();
    return recent.length < limits.failedOrganisationsMin ? undefined : recent.at(-1)?.error;
  }

  get isSuspected(): boolean {
    return this.#recent().length > 0;
  }

  #recent(): { readonly error: unknown }[] {
    const sinceMs = performance.now() - limits.serverFailuresMs;
    return [...this.#failed.values()].filter(({ atMs }) => atMs > sinceMs);
  }
}

/**
 * Returns the error or its cause if it would affect other organisations as well. This excludes an unavailable cluster
 * node, which stores only some organisations. It also excludes timeouts, which may be due to the data or to a lock and
 * are handled by `StallWatch`.
 */
export function serverErrorOf(error: unknown): unknown {
  const { code, message, cause } = error as { code?: unknown; message: string; cause?: unknown };
  if (!isUnavailable(error)) return cause instanceof Error ? serverErrorOf(cause) : undefined;
  const isTimeout = isLockTimeout(error) || /^25P0/.test(String(code)) || /^Query read timeout/.test(message);
  return isServerAway(error) && !isTimeout ? error : undefined;
}
