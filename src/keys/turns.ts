import { RequestError } from '../errors.ts';

/** Lets a few work at once, and the others wait in the order they came; refuses when too many wait. */
export class Turns {
  readonly #atOnce: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #working = 0;

  constructor(atOnce: number, waitingMax: number) {
    this.#atOnce = atOnce;
    this.#waitingMax = waitingMax;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#working < this.#atOnce) this.#working++;
    else if (this.#waiting.length >= this.#waitingMax) throw new RequestError('overloaded');
    // Whoever is done hands its place over.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working--;
    }
  }
}
