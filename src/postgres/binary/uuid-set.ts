import { limits } from '../../limits.ts';
import { ArrayWriter, arrayHeaderBytes, uuidArrayStride } from './array-writer.ts';

const slotCount = 2 ** Math.ceil(Math.log2(limits.recordsPerBatch * 2));

/** Distinct UUIDs in their original order. A `Set` would need strings, but bodies are read without creating strings. */
export class UuidSet {
  readonly #ids = new ArrayWriter('uuid');
  /** A hash table with linear probing. Each slot contains the position of an id plus one, or 0 if the slot is empty. */
  readonly #slots = new Int16Array(slotCount);

  add(view: DataView, at: number): void {
    const a = view.getInt32(at);
    const b = view.getInt32(at + 4);
    const c = view.getInt32(at + 8);
    const d = view.getInt32(at + 12);
    const slots = this.#slots;
    const ids = this.#ids.view;
    let slot = hash(a, b, c, d) & (slotCount - 1);
    for (; slots[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const id = arrayHeaderBytes + ((slots[slot] as number) - 1) * uuidArrayStride + 4;
      if (
        ids.getInt32(id) === a &&
        ids.getInt32(id + 4) === b &&
        ids.getInt32(id + 8) === c &&
        ids.getInt32(id + 12) === d
      )
        return;
    }
    this.#ids.appendWords(a, b, c, d);
    slots[slot] = this.#ids.count;
  }

  get size(): number {
    return this.#ids.count;
  }

  clear(): void {
    this.#ids.clear();
    this.#slots.fill(0);
  }

  /** Valid until the next id is added. */
  finish(): Buffer {
    return this.#ids.finish();
  }
}

function hash(a: number, b: number, c: number, d: number): number {
  const mixed =
    Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b) ^ Math.imul(c, 0xc2b2ae35) ^ Math.imul(d, 0x27d4eb2f);
  return mixed ^ (mixed >>> 15);
}
