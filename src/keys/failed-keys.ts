import { isIPv4 } from 'node:net';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';

/**
 * Attempts with wrong keys, by the address they come from. Whoever makes too many is refused before anything is hashed
 * or looked up. A key id that is known has a count of its own at each address: an old key that some program goes on
 * using must not lock out the good one that its neighbour uses.
 */
export class FailedKeys {
  readonly #limiter: RateLimiterMemory;

  constructor(perMinuteMax: number) {
    this.#limiter = new RateLimiterMemory({ points: perMinuteMax, duration: limits.failedKeysWindowSeconds });
  }

  async refuseTooMany(address: string, knownKeyId: string | undefined): Promise<void> {
    const failed = await this.#limiter.get(nameOf(address, knownKeyId));
    if (failed && failed.consumedPoints >= this.#limiter.points) throw tooMany(failed);
  }

  /** Counts one more. Of several at once that were let through, those that are too many are refused here. */
  async count(address: string, knownKeyId: string | undefined): Promise<void> {
    const failed = await this.#limiter.penalty(nameOf(address, knownKeyId), 1);
    if (failed.consumedPoints > this.#limiter.points) throw tooMany(failed);
  }
}

function tooMany({ msBeforeNext }: RateLimiterRes): RequestError {
  const wait = Math.max(1, Math.ceil(msBeforeNext / 1_000));
  return new RequestError('too_many_failed_keys', { headers: { 'retry-after': String(wait) } });
}

function nameOf(address: string, knownKeyId: string | undefined): string {
  return knownKeyId === undefined ? blockOf(address) : `${blockOf(address)} ${knownKeyId}`;
}

/** Whoever has one IPv6 address has the 2^64 beside it. */
function blockOf(address: string): string {
  const plain = address.replace(/^::ffff:/i, '');
  if (isIPv4(plain)) return plain;
  const [head = '', tail = ''] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const missing = 8 - groups.length - tail.split(':').filter((group) => group !== '').length;
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':');
}
