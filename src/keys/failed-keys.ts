import { isIPv4, isIPv6 } from 'node:net';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';

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

/** A client with one IPv6 address has all 2^64 of its network. Some proxies append the client's port to its address. */
function blockOf(address: string): string {
  if (isIPv4(address)) return address;
  const plain = address
    .replace(/^::ffff:/i, '')
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  if (isIPv4(plain)) return plain;
  if (!isIPv6(plain)) return 'no address';
  const [head = '', tail = ''] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const missing = 8 - groups.length - tail.split(':').filter((group) => group !== '').length;
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':');
}
