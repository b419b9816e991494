import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';
import { blockOf } from './client-address.ts';

/**
 * Counts attempts with wrong keys by address. An address with too many is refused before anything is hashed or looked
 * up. A key id that was found before has its own count at each address: neither an old key that one program still sends
 * nor wrong keys may lock out a good key at the same address.
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

  /** Counts one more failure, and throws if that is one too many. */
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
