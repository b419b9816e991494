import { isUnavailable } from './pool.ts';

/** Something that should go on, and for how long it has not. */
export interface Stalling {
  readonly stalledMs: number;
}

/**
 * Notices that writing has stalled: something is under way, and nothing has ended for too long. However much is waiting,
 * a process in which something ends now and then is merely busy.
 */
export class StallWatch implements Stalling {
  #underWay = 0;
  #movedMs = 0;
  #hasGivenUp = false;

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#underWay === 0 && !this.#hasGivenUp) this.#movedMs = performance.now();
    this.#underWay++;
    try {
      const result = await work();
      this.#moved();
      return result;
    } catch (error) {
      if (isGivenUp(error)) this.#hasGivenUp = true;
      else this.#moved();
      throw error;
    } finally {
      this.#underWay--;
    }
  }

  get stalledMs(): number {
    return this.#underWay > 0 || this.#hasGivenUp ? performance.now() - this.#movedMs : 0;
  }

  /** Whether what waited has failed by its timeout and nothing has succeeded since: it may be no better now. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp;
  }

  /** Nothing is in the way any more. Of what is under way, the end will tell. */
  forgive(): void {
    if (this.#underWay === 0) this.#hasGivenUp = false;
  }

  #moved(): void {
    this.#movedMs = performance.now();
    this.#hasGivenUp = false;
  }
}

/** A statement that is refused for what is in it was answered all the same. */
function isGivenUp(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'overloaded' || isUnavailable(error) || isUnavailable(cause);
}
