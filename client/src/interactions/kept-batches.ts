import type { Connection } from '../connection.ts';
import { resendUntilMs } from '../resend-until.ts';
import type { Batch } from './interaction-batch.ts';

const prefix = 'intake-client:';

/**
 * Batches that a page could not finish sending, kept in `localStorage` for the next page of the same origin. The
 * Idempotency-Key is kept with each batch, so a batch that did reach the service is not stored twice.
 */
export class KeptBatches {
  readonly #storage: Storage;
  /**
   * The service's URL and the id of the API key. The id is included because a different key may belong to a different
   * organisation.
   */
  readonly #owner: string;
  readonly #kept = new Set<string>();

  constructor(storage: Storage, { origin, keyId }: Connection) {
    this.#storage = storage;
    this.#owner = `${origin} ${keyId}`;
  }

  /**
   * Loads the batches that other pages kept, oldest first. Deletes batches that are too old to be sent without storing them
   * twice, or whose age is unknown because the clock was set back.
   */
  load(): Batch[] {
    const batches: Batch[] = [];
    for (const name of Object.keys(this.#storage)) {
      if (!name.startsWith(prefix)) continue;
      const [owner, cut, ...parts] = (this.#storage.getItem(name) ?? '').split('\n');
      const cutMs = Number(cut);
      const key = name.slice(prefix.length);
      if (!(Date.now() < resendUntilMs(cutMs))) this.#storage.removeItem(name);
      else if (owner === this.#owner && parts.length > 0) {
        batches.push({ key, parts, bytes: parts.join().length, cutMs, settlers: [] });
        this.#kept.add(key);
      }
    }
    return batches.sort((one, two) => one.cutMs - two.cutMs);
  }

  /** Stores a batch, unless the storage has no room for it. */
  keep({ key, parts, cutMs }: Batch): void {
    if (this.#kept.has(key)) return;
    try {
      this.#storage.setItem(prefix + key, [this.#owner, cutMs, ...parts].join('\n'));
      this.#kept.add(key);
    } catch {
      // The storage has no room, but the batch is still sent as long as the page stays open.
    }
  }

  /** Returns whether another page may have sent the batch, because it was stored by this page or loaded by it. */
  has({ key }: Batch): boolean {
    return this.#kept.has(key);
  }

  forget({ key }: Batch): void {
    if (this.#kept.delete(key)) this.#storage.removeItem(prefix + key);
  }
}

/** Returns the page's storage, or undefined outside a page or if storage is blocked. */
export function pageStorage(): Storage | undefined {
  try {
    return globalThis.document ? globalThis.localStorage : undefined;
  } catch {
    return undefined;
  }
}
