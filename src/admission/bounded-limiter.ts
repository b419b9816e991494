// admission/: rate limits per organisation and IP address, the limit on bytes in flight, and the fair queue.

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

interface Window {
  points: number;
  readonly endsMs: number;
}

/** The time windows of several limiters, ordered by start time. */
export type Windows = Map<string, Window>;

/** Clients can use any number of addresses, so a full map drops its first window, which is also the first to end. */
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
