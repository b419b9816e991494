// admission/: how much is let in at once: limits for each organisation and address, bytes in flight, the fair queue.

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

interface Window {
  points: number;
  readonly endsMs: number;
}

/** The windows of several limiters, in the order in which they began. */
export type Windows = Map<string, Window>;

/**
 * Counts in memory for at most `namesMax` names. Anyone can come from a new address, so beyond that the window that began
 * first is forgotten. All windows are equally long, so the first in the map are the ones to have ended.
 */
export class BoundedLimiter extends RateLimiterMemory {
  readonly #windows: Windows;
  readonly #namesMax: number;

  constructor(quota: { points: number; duration: number }, windows: Windows, namesMax: number) {
    super(quota);
    this.#windows = windows;
    this.#namesMax = namesMax;
  }

  override async consume(name: string, points = 1): Promise<RateLimiterRes> {
    const nowMs = performance.now();
    const window = this.#windowOf(name, nowMs);
    window.points += points;
    const left = this.points - window.points;
    const state = new RateLimiterRes(Math.max(0, left), window.endsMs - nowMs, window.points);
    if (left < 0) throw state;
    return state;
  }

  #windowOf(name: string, nowMs: number): Window {
    const known = this.#windows.get(name);
    if (known && nowMs < known.endsMs) return known;
    this.#windows.delete(name);
    for (const [first, { endsMs }] of this.#windows) {
      if (nowMs < endsMs && this.#windows.size < this.#namesMax) break;
      this.#windows.delete(first);
    }
    const begun = { points: 0, endsMs: nowMs + this.duration * 1_000 };
    this.#windows.set(name, begun);
    return begun;
  }
}
