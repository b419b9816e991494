import type { Done } from '../../bookkeeping/store.ts';
import type { Next } from '../../jobs/job.ts';

/**
 * In this order. An erasure joins a sweep only in its first step. The report comes before the rows, because it would
 * count changed rows as long as it knows the student. Customers come last, when nothing refers to them.
 */
export type SweepStep =
  | 'start'
  | 'fence before identify'
  | 'identify'
  | 'fence'
  | 'expand'
  | 'report'
  | 'rows'
  | 'rejections'
  | 'receipts'
  | 'keys'
  | 'access requests'
  | 'changes'
  | 'customers'
  | 'statistics'
  | 'detached'
  | 'end';

export interface Swept {
  readonly next: Next<SweepStep>;
  readonly done?: readonly Done[];
}
