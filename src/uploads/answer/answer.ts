// uploads/answer/: the outcome of each record, and the response that reports it.

import { randomUUIDv7 } from 'node:crypto';
import { limits } from '../../limits.ts';
import type { BatchAnswer, BatchStatus, Counts, RecordError } from '../../receipts/batch-answer.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import type { Warning } from '../../registry/warnings.ts';
import type { Problems } from '../../rejections/kind-list.ts';
import type { BatchProblem, Outcome } from './outcome.ts';

type Problem = Problems[number];

export interface UploadAnswer {
  readonly request_id: string;
  readonly type: UploadType;
  readonly dry_run?: true;
  readonly cleared?: Readonly<Record<string, number>>;
  readonly batches: readonly BatchAnswer[];
}

/** Serialised once for both the receipt and the client. */
export interface WrittenBatch {
  readonly status: BatchStatus;
  readonly text: string;
  readonly counts: LoggedCounts;
  /** An earlier request with the same Idempotency-Key stored the batch. */
  readonly isRepeated?: true;
}

/** `repeated` counts records that an earlier request stored. No other count includes them. */
export interface LoggedCounts extends Counts {
  readonly repeated?: number;
}

interface BatchReport {
  readonly number: number;
  /** Random unless it is given. */
  readonly batchId?: string;
  readonly requestId: string;
  readonly type: UploadType;
  /** The index of the batch's first record, because the response counts records from the start of the request. */
  readonly start: number;
  readonly outcomes: readonly Outcome[];
  readonly warnings: readonly Warning[];
  readonly interactionIds?: readonly (string | null)[] | undefined;
  readonly broken?: BatchProblem;
}

const statusWord = { 200: 'success', 207: 'partial', 400: 'error', 500: 'error' } as const;

export function batchAnswer(report: BatchReport): BatchAnswer {
  const counts = { ...noCounts, received: report.outcomes.length };
  const errors: RecordError[] = [];
  const stale: number[] = [];
  const reasons = new Map<Problem, { readonly first: number; count: number }>();
  for (const [at, outcome] of report.outcomes.entries()) {
    const index = report.start + at;
    counts[outcome.kind]++;
    if (outcome.kind === 'stale') stale.push(index);
    if (outcome.kind !== 'failed') continue;
    const { id, problems } = outcome;
    for (const problem of problems) {
      const { field, code, message } = problem;
      errors.push({ index, id, field, code, message });
      const known = reasons.get(problem);
      if (known) known.count++;
      else reasons.set(problem, { first: index, count: 1 });
    }
  }
  const status = report.broken ? 500 : statusOf(counts);
  return {
    batch: report.number,
    status,
    data: {
      status: statusWord[status],
      type: report.type,
      message: summarise(counts),
      request_id: report.requestId,
      batch_id: report.batchId ?? randomUUIDv7(),
      error: report.broken ? capitalise(report.broken.message) : explain(counts, reasons),
      counts,
      errors,
      stale,
      warnings: report.warnings,
      ...(report.interactionIds && { interaction_ids: report.interactionIds }),
    },
  };
}

const noCounts: Counts = { received: 0, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };

export function repeatedCounts(received: number): LoggedCounts {
  return { ...noCounts, received, repeated: received };
}

export function sumCounts(batches: readonly { readonly counts: LoggedCounts }[]): LoggedCounts {
  const sums: Record<string, number> = { ...noCounts };
  for (const { counts } of batches)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  return sums as unknown as LoggedCounts;
}

function statusOf({ received, failed }: Counts): BatchStatus {
  if (failed === 0) return 200;
  return failed === received ? 400 : 207;
}

export function overallStatus(batches: readonly { readonly status: BatchStatus }[]): BatchStatus {
  const [first, ...others] = batches.map(({ status }) => status);
  return first !== undefined && others.every((status) => status === first) ? first : 207;
}

function summarise(counts: Counts): string {
  const parts = (['created', 'updated', 'unchanged', 'stale', 'failed'] as const)
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${counts[kind]} ${kind}`);
  return `${counts.received} ${counts.received === 1 ? 'record' : 'records'} received: ${parts.join(', ')}.`;
}

function explain(
  { received, failed }: Counts,
  reasons: ReadonlyMap<Problem, { readonly first: number; readonly count: number }>,
): string | null {
  if (failed === 0) return null;
  const shown = [...reasons]
    .slice(0, limits.errorsInSummaryMax)
    .map(([{ field, message }, { first, count }]) => {
      const more = count > 1 ? ` (and ${count - 1} more like it)` : '';
      return `record ${first}: ${field === null ? message : `${field} ${message}`}${more}`;
    });
  const rest = reasons.size > shown.length ? ['further reasons are in errors'] : [];
  return `${failed} of ${received} records failed. ${capitalise([...shown, ...rest].join('; '))}.`;
}

function capitalise(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
