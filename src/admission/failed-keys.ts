import { isIPv4, isIPv6 } from 'node:net';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { RequestError, secondsOf } from '../errors.ts';
import { limits } from '../limits.ts';

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

/**
 * A client with one IPv6 address controls all 2^64 addresses in its network. Some proxies append the client's port. A
 * connection that was reset has no address, contrary to the framework's types; such clients share a block.
 */
export function blockOf(address: string | undefined): string {
  if (address === undefined) return 'no address';
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
  const all = [...groups, ...Array<string>(Math.max(0, missing)).fill('0')];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return network.join(':');
}
