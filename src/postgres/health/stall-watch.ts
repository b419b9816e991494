import { limits } from '../../limits.ts';
import { isLockTimeout, isServerAway, isUnavailable } from '../pool.ts';

export interface Stalling {
  readonly stalledMs: number;
}

/** Stalled means that tasks are running, but none has finished for too long. Otherwise the process is just busy. */
export class StallWatch implements Stalling {
  #underWay = 0;
  #movedMs = 0;
  /** The error of a task that timed out, if no task has succeeded since then. */
  #givenUp: unknown;

  readonly failures = new ServerFailures();

  /** `organisations` lists the owners of the written data, unless a single cluster node stores it. */
  async run<T>(organisations: readonly string[], work: () => Promise<T>): Promise<T> {
    if (this.#underWay === 0 && !this.hasGivenUp) this.#movedMs = performance.now();
    this.#underWay++;
    try {
      const result = await work();
      this.#moved();
      this.failures.clear();
      return result;
    } catch (error) {
      if (isGivenUp(error)) this.#givenUp = error;
      else this.#moved();
      this.failures.note(organisations, error);
      throw error;
    } finally {
      this.#underWay--;
    }
  }

  get stalledMs(): number {
    return this.#underWay > 0 || this.hasGivenUp ? performance.now() - this.#movedMs : 0;
  }

  get hasGivenUp(): boolean {
    return this.#givenUp !== undefined;
  }

  get cause(): unknown {
    return this.hasGivenUp ? serverErrorOf(this.#givenUp) : undefined;
  }

  /** Called when nothing blocks writes any more. If tasks are still running, their outcome decides. */
  forgive(): void {
    if (this.#underWay === 0) this.#givenUp = undefined;
  }

  #moved(): void {
    this.#movedMs = performance.now();
    this.#givenUp = undefined;
  }
}

/** A statement that failed because of its content does not count. */
function isGivenUp(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'overloaded' || isUnavailable(error) || isUnavailable(cause);
}

/**
 * Tracks write failures that the database server causes. Failures of a single organisation do not count, because its
 * data may be the cause, unless the readiness check gets the same error. A failure is over after a successful write,
 * and also after a fixed time, because without traffic there would be no successful write.
 */
class ServerFailures {
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
 * Excludes an unavailable cluster node, which stores only some organisations, and timeouts, which may be due to the
 * data or to a lock and are handled by `StallWatch`.
 */
function serverErrorOf(error: unknown): unknown {
  const { code, message, cause } = error as { code?: unknown; message: string; cause?: unknown };
  if (!isUnavailable(error)) return cause instanceof Error ? serverErrorOf(cause) : undefined;
  const isTimeout = isLockTimeout(error) || /^25P0/.test(String(code)) || /^Query read timeout/.test(message);
  return isServerAway(error) && !isTimeout ? error : undefined;
}
