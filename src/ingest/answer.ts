import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { Warning } from '../registry/warnings.ts';
import type { BatchProblem, Outcome } from './outcome.ts';

export interface UploadAnswer {
  readonly request_id: string;
  readonly type: ResourceType;
  /** Only where it is true. */
  readonly dry_run?: true;
  readonly batches: readonly BatchAnswer[];
}

export type BatchStatus = 200 | 207 | 400 | 500;

export interface BatchAnswer {
  readonly batch: number;
  readonly status: BatchStatus;
  readonly data: {
    readonly status: 'success' | 'partial' | 'error';
    readonly type: ResourceType;
    readonly message: string;
    readonly request_id: string;
    readonly batch_id: string;
    readonly error: string | null;
    readonly counts: Counts;
    readonly errors: readonly RecordError[];
    readonly stale: readonly number[];
    readonly warnings: readonly Warning[];
  };
}

export interface Counts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly failed: number;
}

export interface RecordError {
  readonly index: number;
  readonly id: string | null;
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}

interface BatchReport {
  readonly number: number;
  readonly batchId: string;
  readonly requestId: string;
  readonly type: ResourceType;
  /** Where the batch starts in the request's `records`; every index in the answer counts from there. */
  readonly start: number;
  readonly outcomes: readonly Outcome[];
  readonly warnings: readonly Warning[];
  /** Why the whole batch was not stored, if it was not. */
  readonly broken: BatchProblem | undefined;
}

const statusWord = { 200: 'success', 207: 'partial', 400: 'error', 500: 'error' } as const;

export function batchAnswer(report: BatchReport): BatchAnswer {
  const counts = {
    received: report.outcomes.length,
    created: 0,
    updated: 0,
    unchanged: 0,
    stale: 0,
    failed: 0,
  };
  const errors: RecordError[] = [];
  const stale: number[] = [];
  for (const [at, outcome] of report.outcomes.entries()) {
    const index = report.start + at;
    counts[outcome.kind]++;
    if (outcome.kind === 'stale') stale.push(index);
    if (outcome.kind !== 'failed') continue;
    const { id, problems } = outcome;
    for (const { field, code, message } of problems) errors.push({ index, id, field, code, message });
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
      error: report.broken ? capitalise(report.broken.message) : explain(counts, errors),
      counts,
      errors,
      stale,
      warnings: report.warnings,
    },
  };
}

function statusOf({ received, failed }: Counts): BatchStatus {
  if (failed === 0) return 200;
  return failed === received ? 400 : 207;
}

/** The HTTP status of an answer: the batches' own where they agree, 207 where they do not. */
export function overallStatus(batches: readonly BatchAnswer[]): BatchStatus {
  const [first, ...others] = batches.map(({ status }) => status);
  return first !== undefined && others.every((status) => status === first) ? first : 207;
}

function summarise(counts: Counts): string {
  const parts = (['created', 'updated', 'unchanged', 'stale', 'failed'] as const)
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${counts[kind]} ${kind}`);
  return `${counts.received} ${counts.received === 1 ? 'record' : 'records'} received: ${parts.join(', ')}.`;
}

/** For people: how many failed, and the first few reasons, each with where it was met first. Programs read `errors`. */
function explain({ received, failed }: Counts, errors: readonly RecordError[]): string | null {
  if (failed === 0) return null;
  const alike = new Map<string, RecordError[]>();
  for (const error of errors) {
    const reason = error.field === null ? error.message : `${error.field} ${error.message}`;
    const others = alike.get(reason);
    if (others) others.push(error);
    else alike.set(reason, [error]);
  }
  const shown = [...alike].slice(0, limits.errorsInSummaryMax).map(([reason, [first, ...others]]) => {
    const more = others.length > 0 ? ` (and ${others.length} more like it)` : '';
    return `record ${first?.index}: ${reason}${more}`;
  });
  const rest = alike.size > shown.length ? ['further reasons are in errors'] : [];
  return `${failed} of ${received} records failed. ${capitalise([...shown, ...rest].join('; '))}.`;
}

function capitalise(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
