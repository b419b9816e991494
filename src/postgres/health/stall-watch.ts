import { isUnavailable } from '../pool.ts';
import { ServerFailures, serverErrorOf } from './server-failures.ts';

/** Something that should make progress, and how long it has not. */
export interface Stalling {
  readonly stalledMs: number;
}

/**
 * Notices that writing has stalled: tasks are under way, and none has ended for too long. A process in which something
 * ends now and then is merely busy, however long its queue.
 */
export class StallWatch implements Stalling {
  #underWay = 0;
  #movedMs = 0;
  /** The error of a task that was given up, if none has succeeded since. */
  #givenUp: unknown;

  readonly failures = new ServerFailures();

  /** `organisations` are those whose data is written, unless one node of a cluster stores it. */
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

  /** Whether tasks have timed out and none has succeeded since. */
  get hasGivenUp(): boolean {
    return this.#givenUp !== undefined;
  }

  /** Why tasks were given up, if the database server is the cause. */
  get cause(): unknown {
    return this.hasGivenUp ? serverErrorOf(this.#givenUp) : undefined;
  }

  /** Called when nothing is in the way any more. Tasks under way will show by themselves. */
  forgive(): void {
    if (this.#underWay === 0) this.#givenUp = undefined;
  }

  #moved(): void {
    this.#movedMs = performance.now();
    this.#givenUp = undefined;
  }
}

/** A statement that fails for its content was still answered. */
function isGivenUp(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'overloaded' || isUnavailable(error) || isUnavailable(cause);
}
