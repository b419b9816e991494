import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';

/** What is counted: requests of every kind but recording an interaction, those, and the records of uploads. */
export type Limited = 'requests' | 'interactions' | 'records';

/**
 * What each organisation may ask of a process. A window of two seconds holds what two seconds allow, so that a burst of
 * twice the rate passes and the rate holds over time.
 */
export class RequestLimits {
  readonly #limiters: Readonly<Record<Limited, RateLimiterMemory>>;

  constructor({ requestsPerSecondMax, interactionsPerSecondMax, recordsPerSecondMax }: Config) {
    const limiter = (perSecond: number) =>
      new RateLimiterMemory({
        points: perSecond * limits.limitWindowSeconds,
        duration: limits.limitWindowSeconds,
      });
    this.#limiters = {
      requests: limiter(requestsPerSecondMax),
      interactions: limiter(interactionsPerSecondMax),
      records: limiter(recordsPerSecondMax),
    };
  }

  /** Counts, and returns what the answer says of it in its headers; refuses what is too much. */
  async count(what: Limited, organisationId: string, points = 1): Promise<LimitHeaders> {
    const limiter = this.#limiters[what];
    try {
      return this.#headers(what, await limiter.consume(organisationId, points));
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
      throw this.#tooMany(what, refusal as RateLimiterRes);
    }
  }

  #headers(what: Limited, { remainingPoints, msBeforeNext }: RateLimiterRes): LimitHeaders {
    const { points } = this.#limiters[what];
    return {
      'ratelimit-policy': `"${what}";q=${points};w=${limits.limitWindowSeconds}`,
      ratelimit: `"${what}";r=${Math.max(0, remainingPoints)};t=${secondsOf(msBeforeNext)}`,
    };
  }

  #tooMany(what: Limited, refusal: RateLimiterRes): RequestError {
    const { points } = this.#limiters[what];
    const wait = secondsOf(refusal.msBeforeNext);
    return new RequestError('too_many_requests', {
      message:
        `This organisation may send ${points} ${what} in ${limits.limitWindowSeconds} seconds, and these are used up; ` +
        `nothing was stored. Send the request again in ${wait} s, and fewer at a time.`,
      headers: { ...this.#headers(what, refusal), 'retry-after': String(wait) },
    });
  }
}

/** In the form of the IETF's draft on RateLimit header fields. */
export interface LimitHeaders {
  readonly [header: string]: string;
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
