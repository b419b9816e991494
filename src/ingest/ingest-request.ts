import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import { CommitUnconfirmed, isUnavailable, type Pool } from '../store/pool.ts';
import { type BatchAnswer, batchAnswer, type UploadAnswer } from './answer.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { type BatchProblem, failed, type Outcome } from './outcome.ts';
import { idAt, outcomesOf, storeBatch } from './store-batch.ts';

export interface Upload {
  readonly organisationId: string;
  readonly requestId: string;
  readonly type: ResourceType;
  readonly batches: readonly CheckedBatch[];
}

/** Stores the batches of an upload, each by itself in the order sent, and says what became of every record. */
export async function ingestRequest(
  pool: Pool,
  { organisationId, requestId, type, batches: checkedBatches }: Upload,
  onError: (error: unknown) => void,
): Promise<UploadAnswer> {
  const batches: BatchAnswer[] = [];
  let databaseAway = false;
  for (const checked of checkedBatches) {
    const start = batches.length * limits.recordsPerBatch;
    let outcomes: readonly Outcome[];
    let broken: BatchProblem | undefined;
    try {
      if (databaseAway && checked.rows.count > 0) throw new DatabaseAway();
      outcomes = await storeBatch(pool, organisationId, type, checked);
    } catch (error) {
      databaseAway ||= isUnavailable(error);
      // Nothing of the request is stored yet, so the whole of it can be refused.
      if (databaseAway && start === 0) throw new RequestError('database_unavailable', { cause: error });
      if (!(error instanceof DatabaseAway)) onError(error);
      const problem = error instanceof CommitUnconfirmed ? outcomeUnknown : notStored;
      outcomes = outcomesOf(checked, (place) => failed(idAt(checked.rows, place), [problem]));
      broken = problem;
    }
    freeMemory(checked);
    batches.push(
      batchAnswer({
        number: batches.length + 1,
        batchId: randomUUIDv7(),
        requestId,
        type,
        start,
        outcomes,
        warnings: checked.warnings,
        broken,
      }),
    );
  }
  return { request_id: requestId, type, batches };
}

/** What waits for the collector is collected late, for it looks small to it; see docs/performance.md. */
function freeMemory({ sample }: CheckedBatch): void {
  (sample.buffer as ArrayBuffer).transfer(0);
}

/** Stands in for the error of a batch that was not even tried, because the one before it found the database away. */
class DatabaseAway extends Error {}

const notStored: BatchProblem = {
  field: null,
  code: 'not_stored',
  message: 'nothing of this batch was stored, for a reason that is not the data; send it again',
};
const outcomeUnknown: BatchProblem = {
  field: null,
  code: 'outcome_unknown',
  message: 'the batch may or may not have been stored; send it again, which is safe either way',
};
