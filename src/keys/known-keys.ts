import { limits } from '../limits.ts';
import { findApiKey, type StoredKey } from '../store/api-keys.ts';
import type { Pool } from '../store/pool.ts';

/**
 * Keys that were looked up a moment ago. A key that is used all the time costs one look-up every few seconds, and one
 * that is revoked is refused by every process within as many. What was not found is not remembered.
 */
export class KnownKeys {
  readonly #pool: Pool;
  readonly #found = new Map<
    string,
    { readonly key: Promise<StoredKey | undefined>; readonly until: number }
  >();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  find(keyId: string): Promise<StoredKey | undefined> {
    const known = this.#found.get(keyId);
    if (known && known.until > performance.now()) return known.key;
    const key = findApiKey(this.#pool, keyId);
    this.#found.delete(keyId);
    this.#found.set(keyId, { key, until: performance.now() + limits.keyKnownMs });
    key.then(
      (found) => found ?? this.#found.delete(keyId),
      () => this.#found.delete(keyId),
    );
    if (this.#found.size > limits.keysKnownMax) this.#forgetOldest();
    return key;
  }

  #forgetOldest(): void {
    for (const keyId of this.#found.keys()) {
      this.#found.delete(keyId);
      return;
    }
  }
}
