/**
 * The expected effect of an upload in its simplest form: records are applied one after another to a map. The code does
 * not know about batches, statements or SQL.
 */

export type Values = Record<string, unknown>;

/** A record to send, with its expected outcome. */
export interface Sent {
  readonly record: unknown;
  readonly id: string | null;
  /** The field and code of each planted fault, or an empty list for a valid record. */
  readonly faults: readonly { readonly field: string | null; readonly code: string }[];
  /** The record's missing references. */
  readonly dangling: readonly string[];
  /** The values that are stored if the record is applied. */
  readonly values: Values;
}

export interface Expected {
  readonly counts: Record<'received' | 'created' | 'updated' | 'unchanged' | 'stale' | 'failed', number>;
  readonly stale: readonly number[];
  readonly errors: readonly { index: number; id: string | null; field: string | null; code: string }[];
}

export class Oracle {
  readonly stored = new Map<string, Values>();

  upload(records: readonly Sent[]): Expected {
    const counts = { received: records.length, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };
    const stale: number[] = [];
    const errors: { index: number; id: string | null; field: string | null; code: string }[] = [];
    for (const [index, sent] of records.entries()) {
      const outcome = this.#apply(sent);
      counts[outcome]++;
      if (outcome === 'stale') stale.push(index);
      const faults =
        sent.faults.length > 0
          ? sent.faults
          : sent.dangling.map((field) => ({ field, code: 'reference_not_found' }));
      for (const fault of faults) errors.push({ index, id: sent.id, ...fault });
    }
    return { counts, stale, errors };
  }

  #apply({ id, faults, dangling, values }: Sent): 'created' | 'updated' | 'unchanged' | 'stale' | 'failed' {
    if (faults.length > 0 || dangling.length > 0 || id === null) return 'failed';
    const before = this.stored.get(id);
    if (before && isOlder(values.updated, before.updated)) return 'stale';
    this.stored.set(id, values);
    if (!before) return 'created';
    return JSON.stringify(before) === JSON.stringify(values) ? 'unchanged' : 'updated';
  }
}

function isOlder(incoming: unknown, stored: unknown): boolean {
  return typeof incoming === 'string' && typeof stored === 'string' && incoming < stored;
}
