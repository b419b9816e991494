import { msOfUuidV7 } from '../registry/uuid-v7.ts';
import { lakeLimits } from './limits.ts';

/**
 * The ids of a table's newest rows. Transactions do not commit in the order in which their interactions were received, so
 * each commit to the table overlaps slightly with the previous one. Without this cache, each commit would have to read a
 * file.
 */
export class RecentIds {
  readonly #max: number;
  #ids = new Set<string>();
  /** The set contains the ids of all rows that were received in or after this millisecond. */
  #completeFromMs: number;

  /** `newestMs` is the time at which the table's newest row was received. */
  constructor(newestMs: number, max: number = lakeLimits.recentIdsMax) {
    this.#completeFromMs = newestMs + 1;
    this.#max = max;
  }

  /** Returns whether the table has a row with this id, or undefined if the files must be checked. */
  has(id: string): boolean | undefined {
    if (this.#ids.has(id)) return true;
    return msOfUuidV7(id) >= this.#completeFromMs ? false : undefined;
  }

  /** Adds a commit's ids. Must be called for each commit. */
  add(ids: readonly string[]): void {
    const all = [...this.#ids, ...ids];
    const forgotten = all.splice(0, Math.max(0, all.length - this.#max));
    for (const id of forgotten) this.#completeFromMs = Math.max(this.#completeFromMs, msOfUuidV7(id) + 1);
    this.#ids = new Set(all);
  }
}
