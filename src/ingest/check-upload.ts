import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import { isRecord } from '../registry/validate.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { type CheckedBatch, checkBatch } from './check-batch.ts';
import { parseBody } from './parse-body.ts';

/**
 * All of an upload that needs no database: parses the body, checks every record and cuts them into batches. All at once
 * and before the first is stored, so that nothing of what was parsed lives on while the database works.
 */
export function checkUpload(
  type: ResourceType,
  body: Buffer | undefined,
  recordsMax: number,
): CheckedBatch[] {
  const { records, warnings } = readEnvelope(parseBody(body), recordsMax);
  const now = new Date();
  const checked: CheckedBatch[] = [];
  for (let start = 0; start < records.length; start += limits.recordsPerBatch) {
    const sent = records.slice(start, start + limits.recordsPerBatch);
    checked.push(checkBatch(type, sent, now, start === 0 ? warnings : undefined));
  }
  return checked;
}

/** The records of a request's body, once the envelope around them is known to be sound. */
function readEnvelope(body: unknown, recordsMax: number): { records: unknown[]; warnings: WarningCounter } {
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
