import type { FieldProblem } from '../registry/validate.ts';

/** The closed set of things that can happen to a record. */
export type Outcome =
  | { readonly kind: 'created' | 'updated' | 'unchanged' | 'stale' }
  | {
      readonly kind: 'failed';
      /** The record's id, where it is known. */
      readonly id: string | null;
      readonly problems: readonly (FieldProblem | BatchProblem)[];
    };

/** A reason that is not the record's: its whole batch was not stored, or may have been. */
export interface BatchProblem {
  readonly field: null;
  readonly code: 'not_stored' | 'outcome_unknown';
  readonly message: string;
}

export const created: Outcome = { kind: 'created' };
export const updated: Outcome = { kind: 'updated' };
export const unchanged: Outcome = { kind: 'unchanged' };
export const stale: Outcome = { kind: 'stale' };

export function failed(id: string | null, problems: readonly (FieldProblem | BatchProblem)[]): Outcome {
  return { kind: 'failed', id, problems };
}
