import type { UploadType } from '../../registry/upload-types.ts';
import type { FieldProblem } from '../../registry/validate.ts';

/** Everything that can happen to a record. */
export type Outcome =
  | { readonly kind: 'created' | 'updated' | 'unchanged' | 'stale' }
  | {
      readonly kind: 'failed';
      /** The record's id, if known. */
      readonly id: string | null;
      readonly problems: readonly (FieldProblem | BatchProblem)[];
    };

/** A reason that lies outside the record: its batch was not stored, or may have been. */
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

export const notStored: BatchProblem = {
  field: null,
  code: 'not_stored',
  message: 'nothing of this batch was stored, for a reason that is not the data; send it again',
};
const outcomeUnknown: BatchProblem = {
  field: null,
  code: 'outcome_unknown',
  message: 'the batch may or may not have been stored; send it again, which is safe either way',
};
const outcomeUnknownWithoutId: BatchProblem = {
  field: null,
  code: 'outcome_unknown',
  message:
    'the batch may or may not have been stored; send the request again with the same Idempotency-Key, for without one it may be stored twice',
};

/** A record that is sent again replaces itself; an interaction has no id to do so. */
export function outcomeUnknownOf(type: UploadType): BatchProblem {
  return type === 'interactions' ? outcomeUnknownWithoutId : outcomeUnknown;
}
