import type { FieldProblem } from '../../registry/fields.ts';
import type { UploadType } from '../../registry/upload-types.ts';

export type Outcome =
  | { readonly kind: 'created' | 'updated' | 'unchanged' | 'stale' }
  | {
      readonly kind: 'failed';
      readonly id: string | null;
      readonly problems: readonly (FieldProblem | BatchProblem)[];
    };

export interface BatchProblem {
  readonly field: null;
  readonly code: 'not_stored' | 'outcome_unknown' | 'run_ended';
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
  message: 'nothing in this batch was stored, because of a problem on our side; send it again',
};
/** The batch is refused like a request that comes later, so sending it again is no use. */
export const runEnded: BatchProblem = {
  field: null,
  code: 'run_ended',
  message: 'nothing in this batch was stored, because the run ended before it; send it again in another run',
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
    'the batch may or may not have been stored; send the request again with the same Idempotency-Key, because without one it may be stored twice',
};

/** Sending a record again overwrites it, but an interaction has no id, so it would be stored twice. */
export function outcomeUnknownOf(type: UploadType): BatchProblem {
  return type === 'interactions' ? outcomeUnknownWithoutId : outcomeUnknown;
}
