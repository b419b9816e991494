/**
 * What an upload must do, said again in the simplest way: records are applied one after another to a map. It knows
 * nothing of batches, statements or SQL.
 */

export type Values = Record<string, unknown>;

/** A record to send, with what is known of it by construction. */
export interface Sent {
  readonly record: unknown;
  readonly id: string | null;
  /** Field and code of each fault that was put into it; none for a sound one. */
  readonly faults: readonly { readonly field: string | null; readonly code: string }[];
  /** References of it that exist nowhere. */
  readonly dangling: readonly string[];
  /** What is stored if it is applied. */
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
