const words = new Int32Array(64);
const blockBytes = 64;

/** The first 32 bits of the fractional part of a root of each of the first primes. */
function rootsOfPrimes(count: number, root: (prime: number) => number): Int32Array {
  const primes: number[] = [];
  for (let next = 2; primes.length < count; next++)
    if (primes.every((prime) => next % prime !== 0)) primes.push(next);
  return Int32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32);
}

const constants = rootsOfPrimes(64, Math.cbrt);

/**
 * A SHA-256 of data that arrives in pieces. The browser's own needs the whole file in memory, and is only available over HTTPS
 * and on localhost.
 */
export class Sha256 {
  readonly #state = rootsOfPrimes(8, Math.sqrt);
  /** The bytes of the last block, if it is incomplete. */
  readonly #rest = new Uint8Array(blockBytes);
  #bytes = 0;

  add(piece: Uint8Array): void {
    let at = 0;
    const filled = this.#bytes % blockBytes;
    this.#bytes += piece.length;
    if (filled > 0) {
      at = Math.min(blockBytes - filled, piece.length);
      this.#rest.set(piece.subarray(0, at), filled);
      if (filled + at < blockBytes) return;
      this.#addBlock(this.#rest, 0);
    }
    for (; at + blockBytes <= piece.length; at += blockBytes) this.#addBlock(piece, at);
    this.#rest.set(piece.subarray(at));
  }

  /** Returns the hash. Nothing can be added afterwards. */
  hex(): string {
    const bits = BigInt(this.#bytes) * 8n;
    const zeros = (2 * blockBytes - 9 - (this.#bytes % blockBytes)) % blockBytes;
    const end = new DataView(new ArrayBuffer(1 + zeros + 8));
    end.setUint8(0, 0x80);
    end.setBigUint64(1 + zeros, bits);
    this.add(new Uint8Array(end.buffer));
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #addBlock(bytes: Uint8Array, from: number): void {
    for (let at = 0, byte = from; at < 16; at++, byte += 4)
      words[at] =
        ((bytes[byte] as number) << 24) |
        ((bytes[byte + 1] as number) << 16) |
        ((bytes[byte + 2] as number) << 8) |
        (bytes[byte + 3] as number);
    for (let at = 16; at < 64; at++) {
      const early = words[at - 15] as number;
      const late = words[at - 2] as number;
      const mixedEarly = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
      const mixedLate = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
      words[at] = (words[at - 16] as number) + mixedEarly + (words[at - 7] as number) + mixedLate;
    }
    const state = this.#state;
    // Destructuring the array would take ten times as long.
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    let e = state[4] as number;
    let f = state[5] as number;
    let g = state[6] as number;
    let h = state[7] as number;
    for (let at = 0; at < 64; at++) {
      const chosen = (e & f) ^ (~e & g);
      const mixed = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const one = (h + mixed + chosen + (constants[at] as number) + (words[at] as number)) | 0;
      const majority = (a & b) ^ (a & c) ^ (b & c);
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    state[0] = (state[0] as number) + a;
    state[1] = (state[1] as number) + b;
    state[2] = (state[2] as number) + c;
    state[3] = (state[3] as number) + d;
    state[4] = (state[4] as number) + e;
    state[5] = (state[5] as number) + f;
    state[6] = (state[6] as number) + g;
    state[7] = (state[7] as number) + h;
  }
}

/** Rotates a word to the right. */
function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
