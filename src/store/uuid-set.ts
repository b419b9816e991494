import { limits } from '../limits.ts';
import { ArrayWriter, arrayHeaderBytes, uuidArrayStride } from './array-writer.ts';

/** At least twice as many as there can be ids, and a power of two. */
const slotCount = 2 ** Math.ceil(Math.log2(limits.recordsPerBatch * 2));

/**
 * The UUIDs of a batch, each once, in the order they came, as an array for PostgreSQL. A Set would need every id as
 * a string, and whole bodies are read without making one.
 */
export class UuidSet {
  readonly #ids = new ArrayWriter('uuid');
  /** One more than the place of an id, found by its hash or soon after; 0 where there is none. */
  readonly #slots = new Int16Array(slotCount);

  /** Adds the id whose sixteen bytes begin there; returns false where it is in the set already. */
  add(bytes: Buffer, at: number): boolean {
    let slot = hash(bytes, at) & (slotCount - 1);
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const place = (this.#slots[slot] as number) - 1;
      if (isSame(this.#ids.bytes, arrayHeaderBytes + place * uuidArrayStride + 4, bytes, at)) return false;
    }
    this.#ids.appendBytes(bytes, at, at + 16);
    this.#slots[slot] = this.#ids.count;
    return true;
  }

  get size(): number {
    return this.#ids.count;
  }

  clear(): void {
    this.#ids.clear();
    this.#slots.fill(0);
  }

  /** They are good until the next id is added. */
  finish(): Buffer {
    return this.#ids.finish();
  }
}

function hash(bytes: Buffer, at: number): number {
  const mixed =
    Math.imul(bytes.readInt32LE(at), 0x9e3779b1) ^
    Math.imul(bytes.readInt32LE(at + 4), 0x85ebca6b) ^
    Math.imul(bytes.readInt32LE(at + 8), 0xc2b2ae35) ^
    Math.imul(bytes.readInt32LE(at + 12), 0x27d4eb2f);
  return mixed ^ (mixed >>> 15);
}

function isSame(a: Buffer, atA: number, b: Buffer, atB: number): boolean {
  for (let byte = 0; byte < 16; byte++) if (a[atA + byte] !== b[atB + byte]) return false;
  return true;
}
