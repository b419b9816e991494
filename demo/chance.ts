import { createHash } from 'node:crypto';

const dayMs = 86_400_000;
/** Activity by month: high during term, low in summer. */
const busyMonths = [0.7, 0.9, 1, 0.8, 0.9, 0.7, 0.3, 0.25, 0.9, 1, 1, 0.8];

/** Makes all random choices, which are the same for the same seed. */
export class Chance {
  readonly #seed: number;
  readonly #untilMs: number;
  #state: number;

  /** Instants are within the year that ends at `untilMs`. */
  constructor(seed: number, untilMs: number) {
    this.#seed = seed;
    this.#state = seed >>> 0;
    this.#untilMs = untilMs;
  }

  /** A number from 0 to 1, by mulberry32. */
  number(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.number() * from.length)] as T;
  }

  /** Favours early elements: a few shops sell most, and a few students buy most. */
  pickSkewed<T>(from: readonly T[]): T {
    return from[Math.floor(from.length * this.number() ** 2.2)] as T;
  }

  /** An instant in the past year, more often in the evening than in the morning. */
  instant(): string {
    for (;;) {
      const at = new Date(this.#untilMs - this.number() * 365 * dayMs);
      const hour = at.getUTCHours() < 7 ? 0.1 : 0.4 + at.getUTCHours() / 40;
      if (this.number() < (busyMonths[at.getUTCMonth()] as number) * hour) return at.toISOString();
    }
  }

  /** The UUID for a name. */
  idOf(name: string): string {
    const hex = createHash('sha256').update(`${this.#seed} ${name}`).digest('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }
}
