import { isUnavailable } from '../pool.ts';
import { ServerFailures, serverErrorOf } from './server-failures.ts';

export interface Stalling {
  readonly stalledMs: number;
}

/**
 * Detects that writing has stalled, which means that tasks are running, but none has finished for too long. If a task
 * finishes now and then, the process is just busy, however long its queue.
 */
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
