import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../config.ts';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';
import { BoundedLimiter, type Windows } from './bounded-limiter.ts';
import type { SharedCounts } from './shared-counts.ts';

/** `interactions` are counted alone or in batches, `records` in uploads, and `requests` are all other requests. */
type Limited = 'requests' | 'interactions' | 'records';

/** Null means that the default from the settings applies. */
export interface OrganisationLimits {
  readonly requests_per_second_max: number | null;
  readonly interactions_per_second_max: number | null;
  readonly records_per_second_max: number | null;
  readonly bytes_in_flight_max: number | null;
}

export function defaultLimits(config: Config): Readonly<Record<keyof OrganisationLimits, number>> {
  return {
    requests_per_second_max: config.requestsPerSecondMax,
    interactions_per_second_max: config.interactionsPerSecondMax,
    records_per_second_max: config.recordsPerSecondMax,
    bytes_in_flight_max: config.bytesInFlightPerOrganisationMax,
  };
}

export interface Counted {
  readonly organisationId: string;
  /** The client's IP address if the key is a browser key. Each such address has its own limits. */
  readonly visitor: string | undefined;
  readonly limits: OrganisationLimits;
}

type Kind = Limited | 'visitors';

/**
 * Requests are counted over windows of two seconds, so a burst at twice the rate is accepted as long as the average
 * stays within the limit. Processes share their counts through Redis if it is configured and available. With a browser key,
 * interactions are first counted per IP address.
 */
export class RequestLimits {
  readonly #defaults: ReturnType<typeof defaultLimits>;
  readonly #shared: SharedCounts | undefined;
  /** One limiter per kind and quota, shared by organisations with the same limit. */
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

  /** Throws if the limit is exceeded. `before` is the number of points already counted for the same request. */
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
    // Visitors do not see the organisation's remaining quota, because that would reveal its traffic.
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
          // Once exceeded, Redis is not queried until the window ends. There are too many visitors for that.
          ...(!isOfVisitors && { inMemoryBlockOnConsumed: window.points + 1 }),
          insuranceLimiter: here,
        })
      : here;
    this.#limiters[what].set(perSecond, made);
    return made;
  }
}

async function take(
  limiter: RateLimiterMemory | RateLimiterRedis,
  name: string,
  who: string,
  { what, points, before }: { what: Limited; points: number; before: number },
): Promise<LimitHeaders> {
  try {
    return headersOf(what, limiter.points, await limiter.consume(name, points));
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal;
    throw tooMany(who, what, limiter.points, points + before, refusal as RateLimiterRes);
  }
}

/** The header fields of the IETF RateLimit draft. */
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
    ? `Split it, because at most ${quota} are allowed at once.`
    : `Send the request again in ${wait} s, and send less at a time.`;
  // From the code in the detail, a program can see that waiting does not help.
  const detail = {
    field: 'records',
    code: 'too_many_records',
    message: `must be at most ${quota}`,
  } as const;
  return new RequestError('too_many_requests', {
    message: `${who} may send ${quota} ${what} in ${limits.limitWindowSeconds} seconds, and this request exceeds that. ${advice}`,
    ...(isHopeless && { details: [detail] }),
    headers: { ...headersOf(what, quota, refusal), 'retry-after': String(wait) },
  });
}
