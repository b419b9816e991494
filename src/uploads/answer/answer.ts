// uploads/answer/: what became of a record, and the answer that says it.

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
  /** Absent if false. */
  readonly dry_run?: true;
  readonly batches: readonly BatchAnswer[];
}

/** The answer for a batch as JSON text, serialised once for both the receipt and the client. */
export interface WrittenBatch {
  readonly status: BatchStatus;
  readonly text: string;
  readonly counts: LoggedCounts;
  /** Whether an earlier request with the same Idempotency-Key stored it. */
  readonly isRepeated?: true;
}

/** `repeated` counts records that an earlier request stored; they are in no other count. */
export interface LoggedCounts extends Counts {
  readonly repeated?: number;
}

interface BatchReport {
  readonly number: number;
  readonly batchId: string;
  readonly requestId: string;
  readonly type: UploadType;
  /** The index of the batch's first record in the request; indexes in the answer are relative to the request. */
  readonly start: number;
  readonly outcomes: readonly Outcome[];
  readonly warnings: readonly Warning[];
  readonly interactionIds?: readonly (string | null)[] | undefined;
  /** Why the whole batch was not stored, if it was not. */
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
      batch_id: report.batchId,
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

/** The counts of a batch that an earlier request has stored. */
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

/** The HTTP status of an answer: that of the batches if they agree, else 207. */
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

/**
 * For people: how many failed, and the first few reasons, each with the first record it was found in. Programs read
 * `errors`.
 */
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
