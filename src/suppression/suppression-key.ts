import { createHmac } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readUuid } from '../registry/fields.ts';
import { HalfSipHash } from './half-sip-hash.ts';

export interface IdHashes {
  readonly hash: Buffer;
  readonly filter: bigint;
  /** Null if the hashes were made by a version that did not note the key. */
  readonly fingerprint: Buffer | null;
}

/** Other requests have a turn after this time. */
const sliceMs = 20;

export async function inSlices<T, R>(items: readonly T[], make: (item: T) => R): Promise<R[]> {
  const made: R[] = [];
  let startMs = performance.now();
  for (const item of items) {
    made.push(make(item));
    if (performance.now() - startMs < sliceMs) continue;
    await nextTurn();
    startMs = performance.now();
  }
  return made;
}

export function fingerprintOf(key: string): Buffer {
  return createHmac('sha256', key).update('fingerprint').digest().subarray(0, 8);
}

/** Hashes differ between organisations, so that a dump does not reveal that a person was a customer of both. */
export class IdHasher {
  readonly #key: Buffer;
  readonly #fingerprint: Buffer;
  readonly short: HalfSipHash;

  constructor(key: string, organisationId: string) {
    this.#key = createHmac('sha256', key).update(`people of ${organisationId}`).digest();
    this.#fingerprint = fingerprintOf(key);
    this.short = new HalfSipHash(createHmac('sha256', this.#key).update('filter').digest());
  }

  hashOf(id: string): Buffer {
    return createHmac('sha256', this.#key).update(bytesOf(id)).digest().subarray(0, 16);
  }

  hashesOf(id: string): IdHashes {
    this.hashShort(id);
    const { low, high } = this.short;
    const filter = (BigInt(high) << 32n) | BigInt(low >>> 0);
    return { hash: this.hashOf(id), filter, fingerprint: this.#fingerprint };
  }

  /** Leaves the result in `short`. */
  hashShort(id: string): void {
    const bytes = bytesOf(id);
    this.short.hash(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length);
  }
}

/** A UUID is hashed as its sixteen bytes, because UUID columns are read without creating strings. */
function bytesOf(id: string): Buffer {
  const uuid = readUuid(id);
  return uuid === undefined ? Buffer.from(id) : Buffer.from(uuid.replaceAll('-', ''), 'hex');
}
