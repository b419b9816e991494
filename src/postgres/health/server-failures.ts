import { limits } from '../../limits.ts';
import { isLockTimeout, isServerAway, isUnavailable } from '../pool.ts';

/**
 * Failed writes whose cause is the database server, such as a full disk. One organisation alone is never enough: its data may
 * be the cause. But readiness may meet the error too. A write that succeeds ends it, and so does time: without traffic nothing would succeed.
 */
export class ServerFailures {
  /** The organisations that failed last, the oldest failure first. */
  readonly #failed = new Map<string, { readonly error: unknown; readonly atMs: number }>();

  /** `organisations` are those whose write failed. */
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

  /** Called when readiness meets the same error, which then has nothing to do with the data of one organisation. */
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

  /** Whether one organisation has failed. */
  get isSuspected(): boolean {
    return this.#recent().length > 0;
  }

  #recent(): { readonly error: unknown }[] {
    const sinceMs = performance.now() - limits.serverFailuresMs;
    return [...this.#failed.values()].filter(({ atMs }) => atMs > sinceMs);
  }
}

/**
 * The error, or its cause, if other organisations would meet it too. Not so if a node of a cluster is away, which has some
 * organisations only, or after a timeout, which may be due to the data or to a lock: `StallWatch` is for those.
 */
export function serverErrorOf(error: unknown): unknown {
  const { code, message, cause } = error as { code?: unknown; message: string; cause?: unknown };
  if (!isUnavailable(error)) return cause instanceof Error ? serverErrorOf(cause) : undefined;
  const isTimeout = isLockTimeout(error) || /^25P0/.test(String(code)) || /^Query read timeout/.test(message);
  return isServerAway(error) && !isTimeout ? error : undefined;
}
