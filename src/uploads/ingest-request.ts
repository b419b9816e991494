import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { freeMemory } from '../postgres/binary/free-memory.ts';
import { isUnavailable, type Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import type { Step } from '../traces/step.ts';
import { batchAnswer, type WrittenBatch } from './answer/answer.ts';
import { type BatchProblem, failed, notStored, outcomeUnknownOf } from './answer/outcome.ts';
import type { CheckedBatch } from './read/batch-builder.ts';
import { commitBatch, type Progress } from './store/commit-batch.ts';
import { idOfRow, outcomesOf } from './store/store-batch.ts';

interface BatchEvents {
  /** Detects batches that no longer finish. */
  readonly watch: (commit: () => Promise<WrittenBatch>) => Promise<WrittenBatch>;
  readonly step: Step;
  readonly onStored: (durationMs: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Stores an upload's batches in the order sent, each in its own transaction. */
export async function ingestRequest(
  pool: Pool,
  progress: Progress,
  checkedBatches: readonly CheckedBatch[],
  { watch, step, onStored, onError }: BatchEvents,
): Promise<readonly WrittenBatch[]> {
  const batches: WrittenBatch[] = [];
  let databaseAway = false;
  for (const [at, checked] of checkedBatches.entries()) {
    try {
      if (databaseAway) throw new DatabaseAway();
      const startedMs = performance.now();
      const commit = () => commitBatch(pool, progress, at + 1, checked);
      const attributes = { 'intake.batch': at + 1, 'intake.records': checked.received };
      batches.push(await step('batch', () => watch(commit), attributes));
      onStored(performance.now() - startedMs);
    } catch (error) {
      const isOpen = error instanceof CommitUnconfirmed;
      if (isOpen || isUnavailable(error)) progress.references.forgetKnown();
      // Nothing has been stored yet, so the whole request can fail.
      if (at === 0 && (error instanceof RequestError || isUnavailable(error))) throw error;
      databaseAway ||= isUnavailable(error);
      if (!(error instanceof DatabaseAway)) onError(error);
      const problem = isOpen ? outcomeUnknownOf(progress.type) : notStored;
      batches.push(brokenBatch(progress, at + 1, checked, problem));
    }
    // This frees all of the batch's buffers, because they share their memory.
    freeMemory(checked.sample);
  }
  return batches;
}

/** Records that had already failed keep their own errors. */
function brokenBatch(
  { requestId, type }: Progress,
  number: number,
  checked: CheckedBatch,
  broken: BatchProblem,
): WrittenBatch {
  const answer = batchAnswer({
    number,
    requestId,
    type,
    start: (number - 1) * limits.recordsPerBatch,
    outcomes: outcomesOf(checked, (row) => failed(idOfRow(type, checked.rows, row), [broken])),
    warnings: checked.warnings,
    broken,
  });
  return { status: answer.status, text: JSON.stringify(answer), counts: answer.data.counts };
}

class DatabaseAway extends Error {}
