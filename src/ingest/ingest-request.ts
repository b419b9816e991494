import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import { isRecord } from '../registry/validate.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { CommitUnconfirmed, isUnavailable, type Pool } from '../store/pool.ts';
import { type BatchAnswer, batchAnswer, type UploadAnswer } from './answer.ts';
import { type CheckedBatch, checkBatch } from './check-batch.ts';
import { type BatchProblem, failed, type Outcome } from './outcome.ts';
import { idAt, outcomesOf, storeBatch } from './store-batch.ts';

export interface Upload {
  readonly organisationId: string;
  readonly requestId: string;
  readonly type: ResourceType;
  readonly records: readonly unknown[];
  /** What is to be said of the body around the records; it goes with the first batch. */
  readonly warnings: WarningCounter;
}

/** The records of a request's body, once the envelope around them is known to be sound. */
export function readEnvelope(body: unknown, recordsMax: number): Pick<Upload, 'records' | 'warnings'> {
  const records = isRecord(body) ? body.records : undefined;
  if (records === undefined || records === null)
    throw envelopeError('required', 'is required: an array of records');
  if (!Array.isArray(records)) throw envelopeError('wrong_type', 'must be an array of records');
  if (records.length === 0) throw envelopeError('required', 'is empty; send at least one record');
  if (records.length > recordsMax) {
    throw envelopeError(
      'too_many_records',
      `holds ${records.length} records and at most ${recordsMax} may be sent at once; split them over several requests`,
    );
  }
  const warnings = new WarningCounter();
  for (const name in body as object) if (name !== 'records') warnings.unknownField(name);
  return { records, warnings };
}

function envelopeError(code: string, message: string): RequestError {
  return new RequestError('invalid_request', { details: [{ field: 'records', code, message }] });
}

/** Splits an upload into batches, stores each by itself in the order sent, and says what became of every record. */
export async function ingestRequest(
  pool: Pool,
  { organisationId, requestId, type, records, warnings }: Upload,
  onError: (error: unknown) => void,
): Promise<UploadAnswer> {
  const batches: BatchAnswer[] = [];
  let databaseAway = false;
  for (const checked of checkBatches(type, records, warnings)) {
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

/** All at once and before the first is stored, so that nothing of what was parsed lives on while the database works. */
function checkBatches(
  type: ResourceType,
  records: readonly unknown[],
  warnings: WarningCounter,
): CheckedBatch[] {
  const now = new Date();
  const checked: CheckedBatch[] = [];
  for (let start = 0; start < records.length; start += limits.recordsPerBatch) {
    const sent = records.slice(start, start + limits.recordsPerBatch);
    checked.push(checkBatch(type, sent, now, start === 0 ? warnings : undefined));
  }
  return checked;
}
