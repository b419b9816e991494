import type { IndexedRows } from '../../postgres/binary/encoded-rows.ts';
import { type ResourceType, resources } from '../../registry/resources.ts';
import { type Outcome, stale, unchanged, updated } from '../answer/outcome.ts';

/** One version of a record: a row. */
export interface Version {
  readonly rows: IndexedRows;
  readonly row: number;
}

/**
 * Applies records of one id one after the other, in the order sent. PostgreSQL cannot: `on conflict` fails if an id
 * occurs twice in a statement. Keeping only the last would be wrong: with T5 stored, sending T3, then none, then T4
 * must end at T4, because the second replaced the stored one.
 */
export class Versions {
  readonly #updatedColumn: number;
  readonly #last = new Map<string, Version>();

  constructor(type: ResourceType) {
    this.#updatedColumn = Object.keys(resources[type].fields).indexOf('updated');
  }

  /** The outcome of the next record with this id. `againstStored` is its outcome if it is the first. */
  apply(id: string, next: Version, againstStored: Outcome): Outcome {
    const before = this.#last.get(id);
    const outcome = before ? this.#replace(before, next) : againstStored;
    if (outcome !== stale) this.#last.set(id, next);
    return outcome;
  }

  /** The last version of an id, if it is one of those sent. */
  lastOf(id: string): Version | undefined {
    return this.#last.get(id);
  }

  #replace(before: Version, next: Version): Outcome {
    const older = before.rows.instantAt(this.#updatedColumn, before.row);
    const newer = next.rows.instantAt(this.#updatedColumn, next.row);
    if (older !== undefined && newer !== undefined && newer < older) return stale;
    return before.rows.isSameRow(before.row, next.rows, next.row) ? unchanged : updated;
  }
}
