import { type ResourceType, resources } from '../generated/resources.ts';
import type { Warning } from '../index.ts';

/** The most distinct reasons, ids and warnings that are counted; others are only in the files of failed records. */
const distinctMax = 10_000;

export interface Problem {
  readonly column: string | null;
  readonly field?: string | null;
  readonly code: string;
  readonly message: string;
}

export interface Reason extends Problem {
  readonly type: ResourceType;
  count: number;
}

export interface MissingId {
  readonly type: ResourceType;
  readonly id: string;
  count: number;
}

/** Counts the reasons of failed records for the summary. */
export class Tally {
  readonly #reasons = new Map<string, Reason>();
  readonly #missing = new Map<string, MissingId>();
  readonly #warnings = new Map<string, Warning>();

  addProblem(type: ResourceType, { column, code, message }: Problem): void {
    const key = `${type}\n${column}\n${code}\n${message}`;
    const known = this.#reasons.get(key);
    if (known) known.count++;
    else if (this.#reasons.size < distinctMax)
      this.#reasons.set(key, { type, column, code, message, count: 1 });
  }

  /** Counts a missing reference. */
  addMissing(type: ResourceType, field: string, record: Record<string, unknown>): void {
    const { references } = resources[type];
    const target = Object.hasOwn(references, field) ? references[field] : undefined;
    const id = record[field];
    if (target === undefined || typeof id !== 'string') return;
    const key = `${target}\n${id.toLowerCase()}`;
    const known = this.#missing.get(key);
    if (known) known.count++;
    else if (this.#missing.size < distinctMax) {
      this.#missing.set(key, { type: target, id: id.toLowerCase(), count: 1 });
    }
  }

  addWarning(warning: Warning): void {
    const key = `${warning.code}\n${warning.field}`;
    const known = this.#warnings.get(key);
    if (known || this.#warnings.size < distinctMax) {
      this.#warnings.set(key, { ...warning, count: warning.count + (known?.count ?? 0) });
    }
  }

  reasons(): Reason[] {
    return byCount(this.#reasons);
  }

  missing(): MissingId[] {
    return byCount(this.#missing);
  }

  warnings(): Warning[] {
    return byCount(this.#warnings);
  }
}

function byCount<T extends { readonly count: number }>(counted: Map<string, T>): T[] {
  return [...counted.values()].sort((a, b) => b.count - a.count);
}
