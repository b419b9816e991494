import type { UploadType } from '../../generated/resources.ts';
import type { Warning } from '../../index.ts';
import { referencedBy } from '../../parsing/values/derived-id.ts';

/**
 * The maximum number of distinct reasons, ids and warnings that are counted. Any others appear only in the files of failed
 * records.
 */
const distinctMax = 10_000;
const repeatedMax = 100;
/** The maximum number of positions kept for each reason. */
const placesMax = 3;

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
  /** The position of an earlier record with the same id. */
  readonly earlier?: string;
}

export interface Reason extends Problem {
  readonly type: UploadType;
  /** The first records that failed for this reason. */
  readonly places: Place[];
  count: number;
}

export interface MissingId {
  readonly type: UploadType;
  readonly id: string;
  /** The key in the file, or null if the id was not derived from a key. */
  readonly key: string | null;
  count: number;
}

/** A field whose stored values would be lost. */
export interface ClearedField {
  readonly type: UploadType;
  readonly field: string;
  readonly count: number;
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
  readonly #cleared = new Map<string, ClearedField>();

  addProblem(type: UploadType, { column, code, message }: Problem, place: Place): void {
    const key = `${type}\n${column}\n${code}\n${message}`;
    const known = this.#reasons.get(key);
    if (known) {
      known.count++;
      if (known.places.length < placesMax) known.places.push(place);
    } else if (this.#reasons.size < distinctMax)
      this.#reasons.set(key, { type, column, code, message, count: 1, places: [place] });
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

  /** Adds what a dry run found: the number of stored values that would be lost, by field. */
  addCleared(type: UploadType, cleared: Readonly<Record<string, number>>): void {
    for (const [field, count] of Object.entries(cleared)) {
      const key = `${type}\n${field}`;
      this.#cleared.set(key, { type, field, count: count + (this.#cleared.get(key)?.count ?? 0) });
    }
  }

  cleared(): ClearedField[] {
    return byCount(this.#cleared);
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
