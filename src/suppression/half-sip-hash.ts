/**
 * HalfSipHash-2-4 with 64 bits of output. Its 32-bit arithmetic takes 0.2 microseconds per id in JavaScript, compared
 * with 19 for an HMAC. Without the key, nobody can compute hashes or test whether an id was erased.
 */
export class HalfSipHash {
  readonly #k0: number;
  readonly #k1: number;
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;
  /** The last hash, as signed integers. */
  low = 0;
  high = 0;

  /** The key must have eight bytes. */
  constructor(key: Buffer) {
    this.#k0 = key.readInt32LE(0);
    this.#k1 = key.readInt32LE(4);
  }

  hash(bytes: DataView, at: number, length: number): void {
    this.#v0 = this.#k0;
    this.#v1 = this.#k1 ^ 0xee;
    this.#v2 = this.#k0 ^ 0x6c796765;
    this.#v3 = this.#k1 ^ 0x74656462;
    const whole = at + (length & ~3);
    for (let next = at; next < whole; next += 4) this.#add(bytes.getInt32(next, true));
    let last = length << 24;
    for (let next = whole; next < at + length; next++) last |= bytes.getUint8(next) << (8 * (next - whole));
    this.#add(last);
    this.#v2 ^= 0xee;
    this.#mix(4);
    this.low = this.#v1 ^ this.#v3;
    this.#v1 ^= 0xdd;
    this.#mix(4);
    this.high = this.#v1 ^ this.#v3;
  }

  #add(word: number): void {
    this.#v3 ^= word;
    this.#mix(2);
    this.#v0 ^= word;
  }

  #mix(rounds: number): void {
    let [v0, v1, v2, v3] = [this.#v0, this.#v1, this.#v2, this.#v3];
    for (let round = 0; round < rounds; round++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    this.#v0 = v0;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }
}
