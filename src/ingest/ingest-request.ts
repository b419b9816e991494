import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { CommitUnconfirmed, isUnavailable, type Pool } from '../store/pool.ts';
import { type BatchAnswer, batchAnswer, type UploadAnswer } from './answer.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { commitBatch, type Progress } from './commit-batch.ts';
import { type BatchProblem, failed, notStored, outcomeUnknown } from './outcome.ts';
import { idAt, outcomesOf } from './store-batch.ts';

/** Stores the batches of an upload, each by itself in the order sent, and says what became of every record. */
export async function ingestRequest(
  pool: Pool,
  progress: Progress,
  checkedBatches: readonly CheckedBatch[],
  onError: (error: unknown) => void,
): Promise<UploadAnswer> {
  const batches: BatchAnswer[] = [];
  let databaseAway = false;
  for (const [at, checked] of checkedBatches.entries()) {
    try {
      if (databaseAway) throw new DatabaseAway();
      batches.push(await commitBatch(pool, progress, at + 1, checked));
    } catch (error) {
      if (error instanceof RequestError) throw error;
      databaseAway ||= isUnavailable(error);
      // Nothing of the request is stored yet, so the whole of it can be refused.
      if (databaseAway && at === 0) throw new RequestError('database_unavailable', { cause: error });
      if (!(error instanceof DatabaseAway)) onError(error);
      const problem = error instanceof CommitUnconfirmed ? outcomeUnknown : notStored;
      batches.push(brokenBatch(progress, at + 1, checked, problem));
    }
    freeMemory(checked);
  }
  return { request_id: progress.requestId, type: progress.type, batches };
}

/** What is said of a batch that was not stored: of its bad records still what is wrong with them. */
function brokenBatch(
  { requestId, type }: Progress,
  number: number,
  checked: CheckedBatch,
  broken: BatchProblem,
): BatchAnswer {
  return batchAnswer({
    number,
    batchId: randomUUIDv7(),
    requestId,
    type,
    start: (number - 1) * limits.recordsPerBatch,
    outcomes: outcomesOf(checked, (place) => failed(idAt(checked.rows, place), [broken])),
    warnings: checked.warnings,
    broken,
  });
}

/** What waits for the collector is collected late, for it looks small to it; see docs/performance.md. */
function freeMemory({ sample }: CheckedBatch): void {
  (sample.buffer as ArrayBuffer).transfer(0);
}

/** Stands in for the error of a batch that was not even tried, because the one before it found the database away. */
class DatabaseAway extends Error {}
