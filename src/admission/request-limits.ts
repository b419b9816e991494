import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../config.ts';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';
import { BoundedLimiter, type Windows } from './bounded-limiter.ts';
import type { SharedCounts } from './shared-counts.ts';

/** What is counted: interactions, one by one or in batches; all other requests; and the records of uploads. */
export type Limited = 'requests' | 'interactions' | 'records';

/** An organisation's own limits; null where the setting holds. */
export interface OrganisationLimits {
  readonly requests_per_second_max: number | null;
  readonly interactions_per_second_max: number | null;
  readonly records_per_second_max: number | null;
  readonly bytes_in_flight_max: number | null;
}

/** What holds for an organisation without limits of its own. */
export function defaultLimits(config: Config): Readonly<Record<keyof OrganisationLimits, number>> {
  return {
    requests_per_second_max: config.requestsPerSecondMax,
    interactions_per_second_max: config.interactionsPerSecondMax,
    records_per_second_max: config.recordsPerSecondMax,
    bytes_in_flight_max: config.bytesInFlightPerOrganisationMax,
  };
}

/** Who is counted. */
export interface Counted {
  readonly organisationId: string;
  /** With a browser key: the client's address, which has limits of its own. */
  readonly visitor: string | undefined;
  readonly limits: OrganisationLimits;
}

type Kind = Limited | 'visitors';

/**
 * Limits what each organisation may send. The window is two seconds with a quota of two seconds, so a burst of twice
 * the rate passes while the average holds. Counted in Redis for all processes together if there is one, else, and while
 * Redis is away, in memory. With a browser key, the interactions of each address are counted first.
 */
export class RequestLimits {
  readonly #defaults: ReturnType<typeof defaultLimits>;
  readonly #shared: SharedCounts | undefined;
  /** One limiter for each kind and quota: organisations with the same limit share it. */
  readonly #limiters: Readonly<Record<Kind, Map<number, RateLimiterMemory | RateLimiterRedis>>> = {
    requests: new Map(),
    interactions: new Map(),
    records: new Map(),
    visitors: new Map(),
  };
  readonly #visitorsMax: number;
  readonly #visitors: Windows = new Map();

  constructor(config: Config, shared?: SharedCounts) {
    this.#shared = shared;
    this.#defaults = defaultLimits(config);
    this.#visitorsMax = config.browserInteractionsPerSecondMax;
  }

  /**
   * Counts, and returns the rate-limit headers of the answer; throws if it is too much. `before` is how much of the
   * request was counted earlier.
   */
  async count(
    what: Limited,
    { organisationId, limits: own, visitor }: Counted,
    points = 1,
    before = 0,
  ): Promise<LimitHeaders> {
    const limit = `${what}_per_second_max` as const;
    const perSecond = own[limit] ?? this.#defaults[limit];
    const counting = { what, points, before };
    if (visitor === undefined)
      return take(this.#limiterOf(what, perSecond), organisationId, 'This organisation', counting);
    const share = Math.min(this.#visitorsMax, Math.ceil(perSecond / limits.browserShareOfLimit));
    const name = `${organisationId} ${visitor}`;
    const ofVisitor = await take(this.#limiterOf('visitors', share), name, 'This address', counting);
    await take(this.#limiterOf(what, perSecond), organisationId, 'This organisation', counting);
    // A visitor is not shown how much the organisation has left: that is its traffic.
    return ofVisitor;
  }

  #limiterOf(what: Kind, perSecond: number): RateLimiterMemory | RateLimiterRedis {
    const found = this.#limiters[what].get(perSecond);
    if (found) return found;
    const window = { points: perSecond * limits.limitWindowSeconds, duration: limits.limitWindowSeconds };
    const isOfVisitors = what === 'visitors';
    const here = isOfVisitors
      ? new BoundedLimiter(window, this.#visitors, limits.browserAddressesMax)
      : new RateLimiterMemory(window);
    const made = this.#shared
      ? new RateLimiterRedis({
          ...window,
          storeClient: this.#shared.client,
          keyPrefix: `intake:${what}`,
          rejectIfRedisNotReady: true,
          // Once over the quota, Redis is not asked again until the window ends. There are too many addresses to remember.
          ...(!isOfVisitors && { inMemoryBlockOnConsumed: window.points + 1 }),
          insuranceLimiter: here,
        })
      : here;
    this.#limiters[what].set(perSecond, made);
    return made;
  }
}

interface Counting {
  readonly what: Limited;
  readonly points: number;
  readonly before: number;
}

async function take(
  limiter: RateLimiterMemory | RateLimiterRedis,
  name: string,
  who: string,
  { what, points, before }: Counting,
): Promise<LimitHeaders> {
  try {
    return headersOf(what, limiter.points, await limiter.consume(name, points));
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal;
    throw tooMany(who, what, limiter.points, points + before, refusal as RateLimiterRes);
  }
}

/** As in the IETF draft on RateLimit header fields. */
export interface LimitHeaders {
  readonly 'ratelimit-policy': string;
  readonly ratelimit: string;
}

function headersOf(
  what: Limited,
  quota: number,
  { remainingPoints, msBeforeNext }: RateLimiterRes,
): LimitHeaders {
  return {
    'ratelimit-policy': `"${what}";q=${quota};w=${limits.limitWindowSeconds}`,
    ratelimit: `"${what}";r=${Math.max(0, remainingPoints)};t=${secondsOf(msBeforeNext)}`,
  };
}

function tooMany(
  who: string,
  what: Limited,
  quota: number,
  points: number,
  refusal: RateLimiterRes,
): RequestError {
  const wait = secondsOf(refusal.msBeforeNext);
  const isHopeless = points > quota;
  const advice = isHopeless
    ? `Split it: no more than ${quota} can pass at once.`
    : `Send the request again in ${wait} s, and fewer at a time.`;
  // By the code of the detail a program sees that waiting is of no use.
  const detail = {
    field: 'records',
    code: 'too_many_records',
    message: `must be no more than ${quota}`,
  } as const;
  return new RequestError('too_many_requests', {
    message: `${who} may send ${quota} ${what} in ${limits.limitWindowSeconds} seconds, and this would be more. ${advice}`,
    ...(isHopeless && { details: [detail] }),
    headers: { ...headersOf(what, quota, refusal), 'retry-after': String(wait) },
  });
}
