import type { Connection } from '../connection.ts';
import { limits } from '../limits.ts';
import type { Batch } from './interaction-batch.ts';

const prefix = 'intake-client:';

/**
 * Batches that a page could not finish, in its `localStorage`, for the next page of the same origin. Each is kept with its
 * Idempotency-Key, so a batch that was stored after all is not stored again.
 */
export class KeptBatches {
  readonly #storage: Storage;
  /** The service and the id in the API key: another key may belong to another organisation. */
  readonly #owner: string;
  readonly #kept = new Set<string>();

  constructor(storage: Storage, { origin, keyId }: Connection) {
    this.#storage = storage;
    this.#owner = `${origin} ${keyId}`;
  }

  /** Batches of earlier pages, the oldest first. Forgets those that are too old to be sent once. */
  load(): Batch[] {
    const batches: Batch[] = [];
    for (const name of Object.keys(this.#storage)) {
      if (!name.startsWith(prefix)) continue;
      const [owner, cut, ...parts] = (this.#storage.getItem(name) ?? '').split('\n');
      const cutMs = Number(cut);
      const key = name.slice(prefix.length);
      if (!(Date.now() - cutMs < limits.keptForMs)) this.#storage.removeItem(name);
      else if (owner === this.#owner && parts.length > 0) {
        batches.push({ key, parts, bytes: parts.join().length, cutMs, settlers: [] });
        this.#kept.add(key);
      }
    }
    return batches.sort((one, two) => one.cutMs - two.cutMs);
  }

  /** Does without those for which the storage has no room. */
  keep({ key, parts, cutMs }: Batch): void {
    if (this.#kept.has(key)) return;
    try {
      this.#storage.setItem(prefix + key, [this.#owner, cutMs, ...parts].join('\n'));
      this.#kept.add(key);
    } catch {
      // The batch is still sent as long as the page lives.
    }
  }

  forget({ key }: Batch): void {
    if (this.#kept.delete(key)) this.#storage.removeItem(prefix + key);
  }
}

/** The storage of this page; undefined if there is no page, or it may store nothing. */
export function pageStorage(): Storage | undefined {
  try {
    return globalThis.document ? globalThis.localStorage : undefined;
  } catch {
    return undefined;
  }
}
