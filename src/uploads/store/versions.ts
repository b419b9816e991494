import type { IndexedRows } from '../../postgres/binary/encoded-rows.ts';
import { type ResourceType, resources } from '../../registry/resources.ts';
import { type Outcome, stale, unchanged, updated } from '../answer/outcome.ts';

interface Version {
  readonly rows: IndexedRows;
  readonly row: number;
}

/**
 * In the order sent. `on conflict` fails if an id occurs twice in a statement, and keeping only the last record would
 * be wrong. Suppose that a version from time T5 is stored, and a client sends one from T3, one without a time, and one
 * from T4. The version from T4 must win, because the one without a time replaced T5.
 */
export class Versions {
  readonly #updatedColumn: number;
  readonly #last = new Map<string, Version>();

  constructor(type: ResourceType) {
    this.#updatedColumn = Object.keys(resources[type].fields).indexOf('updated');
  }

  /** `againstStored` is the outcome if this is the first record with the id. */
  apply(id: string, next: Version, againstStored: Outcome): Outcome {
    const before = this.#last.get(id);
    const outcome = before ? this.#replace(before, next) : againstStored;
    if (outcome !== stale) this.#last.set(id, next);
    return outcome;
  }

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
