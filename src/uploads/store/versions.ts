import { arrayHeaderBytes, binaryArray } from '../../postgres/binary/array-writer.ts';
import { type EncodedRows, IndexedRows, idAt, rowsOf } from '../../postgres/binary/encoded-rows.ts';
import type { Mode } from '../../registry/fields.ts';
import { type ResourceType, resources } from '../../registry/resources.ts';
import { created, failed, type Outcome, stale, unchanged, updated } from '../answer/outcome.ts';
import type { Compared } from './compare.ts';
import { allFields, lackingIn, sentOf } from './sent-fields.ts';

interface Version {
  /** Where each field's value comes from. Undefined where it is the stored one. */
  readonly sources: readonly (Source | undefined)[];
}

interface Source {
  readonly rows: IndexedRows;
  readonly row: number;
}

interface Next extends Source {
  /** A bitmask of the fields that were sent. */
  readonly sent: number;
}

/**
 * In the order sent. `on conflict` fails if an id occurs twice in a statement, and keeping only the last record would
 * be wrong. Suppose that a version from time T5 is stored, and a client sends one from T3, one without a time, and one
 * from T4. The version from T4 must win, because the one without a time replaced T5. A record that is merged only has an
 * opinion on the fields that it was sent with.
 */
export class Versions {
  readonly #type: ResourceType;
  readonly #mode: Mode;
  readonly #fields: number;
  readonly #updatedColumn: number;
  readonly #last = new Map<string, Version>();

  constructor(type: ResourceType, mode: Mode) {
    const names = Object.keys(resources[type].fields);
    this.#type = type;
    this.#mode = mode;
    this.#fields = names.length;
    this.#updatedColumn = names.indexOf('updated');
  }

  /**
   * Returns the outcome of each row, which has to be asked for in order. `compared` counts until the batch itself has
   * changed what it was compared with. Rows with an id that this batch has inserted are given by `isInserted`.
   */
  against(
    rows: EncodedRows,
    compared: Compared,
    isInserted: (id: string) => boolean = () => false,
  ): (row: number) => Outcome {
    const indexed = new IndexedRows(rows);
    const [absent, changed, old] = [compared.absent, compared.changed, compared.stale].map(
      (list) => new Set(list),
    ) as [Set<number>, Set<number>, Set<number>];
    const differing = (row: number) => compared.differing.get(row) ?? (changed.has(row) ? allFields : 0);
    return (row) => {
      const id = idAt(rows, row);
      const next = { rows: indexed, row, sent: this.#mode === 'merge' ? sentOf(rows, row) : allFields };
      const before = this.#last.get(id);
      if (!before && (absent.has(row) || isInserted(id))) return this.#create(id, next);
      if (this.#isStale(before, next, old.has(row))) return stale;
      const outcome = this.#differs(before, next, differing(row)) ? updated : unchanged;
      this.#last.set(id, this.#overlaid(before, next, next.sent));
      return outcome;
    };
  }

  /** The last version of each id, as rows with the types of `like`. */
  lastOf(ids: readonly string[], { arrays }: EncodedRows): EncodedRows {
    const last = ids.map((id) => this.#last.get(id) as Version);
    return rowsOf(
      arrays,
      last.map(({ sources }) => {
        const any = sources.find((source) => source !== undefined) as Source;
        const values = sources.map((source, column) => valueAt(source ?? any, column));
        return this.#mode === 'merge' ? [...values, sentValue(sources)] : values;
      }),
    );
  }

  #create(id: string, next: Next): Outcome {
    const lacking = lackingIn(this.#type, next.sent);
    if (lacking.length > 0) return failed(id, lacking);
    this.#last.set(id, this.#overlaid(undefined, next, allFields));
    return created;
  }

  #isStale(before: Version | undefined, next: Next, isOld: boolean): boolean {
    const source = before?.sources[this.#updatedColumn];
    if (!source) return isOld;
    const older = source.rows.instantAt(this.#updatedColumn, source.row);
    const newer = next.rows.instantAt(this.#updatedColumn, next.row);
    return older !== undefined && newer !== undefined && newer < older;
  }

  #differs(before: Version | undefined, next: Next, differing: number): boolean {
    for (let column = 0; column < this.#fields; column++) {
      const bit = 1 << column;
      if ((next.sent & bit) === 0) continue;
      const source = before?.sources[column];
      const isSame = source ? valueAt(source, column).equals(valueAt(next, column)) : (differing & bit) === 0;
      if (!isSame) return true;
    }
    return false;
  }

  #overlaid(before: Version | undefined, next: Next, taken: number): Version {
    const sources = Array.from({ length: this.#fields }, (_, column) =>
      taken & (1 << column) ? next : before?.sources[column],
    );
    return { sources };
  }
}

function valueAt({ rows, row }: Source, column: number): Buffer {
  return rows.valueAt(column, row);
}

function sentValue(sources: Version['sources']): Buffer {
  const sent = sources.reduce((bits, source, column) => (source ? bits | (1 << column) : bits), 0);
  return binaryArray('int4', [sent]).subarray(arrayHeaderBytes);
}
