import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';
import { blockOf } from './client-address.ts';

/**
 * An address with too many failures is refused before any hashing or lookup. Each existing key id has a separate count
 * at each address, so a valid key still works at an address from which another program sends old or wrong keys.
 */
export class FailedKeys {
  readonly #limiter: RateLimiterMemory;

  constructor(perMinuteMax: number) {
    this.#limiter = new RateLimiterMemory({ points: perMinuteMax, duration: limits.failedKeysWindowSeconds });
  }

  async refuseTooMany(address: string, knownKeyId?: string): Promise<void> {
    const failed = await this.#limiter.get(nameOf(address, knownKeyId));
    if (failed && failed.consumedPoints >= this.#limiter.points) throw tooMany(failed);
  }

  /** Throws if there are too many. */
  async count(address: string, knownKeyId?: string): Promise<void> {
    const failed = await this.#limiter.penalty(nameOf(address, knownKeyId), 1);
    if (failed.consumedPoints > this.#limiter.points) throw tooMany(failed);
  }
}

function tooMany({ msBeforeNext }: RateLimiterRes): RequestError {
  return new RequestError('too_many_failed_keys', {
    headers: { 'retry-after': String(secondsOf(msBeforeNext)) },
  });
}

function nameOf(address: string, knownKeyId?: string): string {
  return knownKeyId === undefined ? blockOf(address) : `${blockOf(address)} ${knownKeyId}`;
}
