import type { UploadType } from '../../generated/resources.ts';
import type { Warning } from '../../index.ts';
import { referencedBy } from '../../parsing/values/derived-id.ts';

/**
 * The maximum number of distinct reasons, ids and warnings that are counted. Any others appear only in the files of failed
 * records.
 */
const distinctMax = 10_000;
const repeatedMax = 100;

export interface Problem {
  readonly column: string | null;
  readonly field?: string | null;
  readonly code: string;
  readonly message: string;
}

/** The position of a record: its line, or its number in a JSON or Parquet file. */
export interface Place {
  readonly path: string;
  readonly line: number;
}

export interface Reason extends Problem {
  readonly type: UploadType;
  /** The first record that failed for this reason. */
  readonly first: Place;
  count: number;
}

export interface MissingId {
  readonly type: UploadType;
  readonly id: string;
  /** The key in the file, or null if the id was not derived from a key. */
  readonly key: string | null;
  count: number;
}

/** Records with the same id. */
export interface Repeated {
  readonly path: string;
  readonly lines: readonly number[];
}

export interface TalliedWarning extends Warning {
  readonly repeated?: readonly Repeated[];
}

/** Counts the reasons for failed records, for the summary. */
export class Tally {
  readonly #reasons = new Map<string, Reason>();
  readonly #missing = new Map<string, MissingId>();
  readonly #warnings = new Map<string, TalliedWarning>();

  addProblem(type: UploadType, { column, code, message }: Problem, first: Place): void {
    const key = `${type}\n${column}\n${code}\n${message}`;
    const known = this.#reasons.get(key);
    if (known) known.count++;
    else if (this.#reasons.size < distinctMax)
      this.#reasons.set(key, { type, column, code, message, count: 1, first });
  }

  /** Counts a missing reference. */
  addMissing(type: UploadType, field: string, record: Record<string, unknown>, sourceKey?: string): void {
    const target = referencedBy(type, field, record);
    const id = record[field];
    if (target === undefined || typeof id !== 'string') return;
    const key = `${target}\n${id.toLowerCase()}`;
    const known = this.#missing.get(key);
    if (known) known.count++;
    else if (this.#missing.size < distinctMax) {
      const isDerived = sourceKey !== undefined && sourceKey.toLowerCase() !== id.toLowerCase();
      const missing = { type: target, id: id.toLowerCase(), key: isDerived ? sourceKey : null, count: 1 };
      this.#missing.set(key, missing);
    }
  }

  addWarning(warning: Warning, places: readonly Repeated[] = []): void {
    const key = `${warning.code}\n${warning.field}`;
    const known = this.#warnings.get(key);
    if (!known && this.#warnings.size >= distinctMax) return;
    const repeated = [...(known?.repeated ?? []), ...places].slice(0, repeatedMax);
    const count = warning.count + (known?.count ?? 0);
    this.#warnings.set(key, { ...warning, count, ...(repeated.length > 0 && { repeated }) });
  }

  reasons(): Reason[] {
    return byCount(this.#reasons);
  }

  missing(): MissingId[] {
    return byCount(this.#missing);
  }

  warnings(): TalliedWarning[] {
    return byCount(this.#warnings);
  }
}

function byCount<T extends { readonly count: number }>(counted: Map<string, T>): T[] {
  return [...counted.values()].sort((a, b) => b.count - a.count);
}
