// receipts/: the outcome of each upload and replay.

import type { counted } from '../bookkeeping/store.ts';
import type { UploadType } from '../registry/upload-types.ts';
import type { Warning } from '../registry/warnings.ts';

/** As it is sent to the client and stored in the receipt. */
export interface BatchAnswer {
  readonly batch: number;
  readonly status: BatchStatus;
  readonly data: {
    readonly status: 'success' | 'partial' | 'error';
    readonly type: UploadType;
    readonly message: string;
    readonly request_id: string;
    readonly batch_id: string;
    readonly error: string | null;
    readonly counts: Counts;
    readonly errors: readonly RecordError[];
    readonly stale: readonly number[];
    readonly warnings: readonly Warning[];
    /** Only for a stored batch of interactions. Null for a failed record. */
    readonly interaction_ids?: readonly (string | null)[];
  };
}

export type Counts = Readonly<Record<(typeof counted)[number], number>>;

export interface RecordError {
  readonly index: number;
  readonly id: string | null;
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}

export type BatchStatus = 200 | 207 | 400 | 500;
