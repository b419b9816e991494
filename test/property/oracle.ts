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
  /** The values that are stored if the record is applied. If it is merged, only those of the fields that it has. */
  readonly values: Values;
}

/** What merging needs to know of a type. */
export interface MergedType {
  /** Every field, in order, with the value that is stored if it is never sent. */
  readonly defaults: Values;
  readonly required: readonly string[];
}

export interface Expected {
  readonly counts: Record<'received' | 'created' | 'updated' | 'unchanged' | 'stale' | 'failed', number>;
  readonly stale: readonly number[];
  readonly errors: readonly { index: number; id: string | null; field: string | null; code: string }[];
}

export class Oracle {
  readonly stored = new Map<string, Values>();

  upload(records: readonly Sent[], merged?: MergedType): Expected {
    const counts = { received: records.length, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };
    const stale: number[] = [];
    const errors: { index: number; id: string | null; field: string | null; code: string }[] = [];
    for (const [index, sent] of records.entries()) {
      const faults = merged ? this.#faultsOfMerged(sent, merged) : faultsOf(sent);
      const outcome = faults.length > 0 ? 'failed' : this.#apply(sent, merged?.defaults);
      counts[outcome]++;
      if (outcome === 'stale') stale.push(index);
      for (const fault of faults) errors.push({ index, id: sent.id, ...fault });
    }
    return { counts, stale, errors };
  }

  /** A record can lack required fields only if there is one to merge it with. */
  #faultsOfMerged(sent: Sent, { required }: MergedType): ReturnType<typeof faultsOf> {
    const faults = faultsOf(sent);
    if (faults.length > 0 || this.stored.has(sent.id as string)) return faults;
    const lacking = required.filter((field) => !(field in sent.values));
    return lacking.map((field) => ({ field, code: 'required' }));
  }

  #apply(
    { id, values }: Sent,
    defaults: Values | undefined,
  ): 'created' | 'updated' | 'unchanged' | 'stale' | 'failed' {
    if (id === null) return 'failed';
    const before = this.stored.get(id);
    if (before && isOlder(values.updated, before.updated)) return 'stale';
    const after = { ...defaults, ...(defaults && before), ...values };
    this.stored.set(id, after);
    if (!before) return 'created';
    return JSON.stringify(before) === JSON.stringify(after) ? 'unchanged' : 'updated';
  }
}

function faultsOf({
  faults,
  dangling,
}: Sent): readonly { readonly field: string | null; readonly code: string }[] {
  return faults.length > 0 ? faults : dangling.map((field) => ({ field, code: 'reference_not_found' }));
}

function isOlder(incoming: unknown, stored: unknown): boolean {
  return typeof incoming === 'string' && typeof stored === 'string' && incoming < stored;
}
