import { randomUUIDv7 } from 'node:crypto';
import { type Detail, RequestError } from '../errors.ts';
import { ObjectReader } from '../json/object-reader.ts';
import { endOfBody, findingFault, startOfJson } from '../json/parse-body.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { checkedEventTime, type ItemType, interaction } from '../registry/interaction.ts';
import { type FieldProblem, makeCheck, type Row, unreadableRecord } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import { type NewInteraction, type StoredInteraction, storedForm } from './interaction-rows.ts';
import type { InteractionWriter } from './interaction-writer.ts';
import { keepInteraction, missingReferences, refuseMissing } from './missing-references.ts';
import { recordOnce } from './record-once.ts';

const fields = Object.keys(interaction);
const reader = new ObjectReader(fields);
const check = makeCheck(interaction);

export interface InteractionRequest {
  readonly organisationId: string;
  readonly requestId: string;
  readonly body: Buffer | undefined;
  readonly idempotencyKey: string | undefined;
}

export interface InteractionParts {
  readonly pool: Pool;
  readonly writer: InteractionWriter;
}

export interface RecordedInteraction {
  readonly interaction: InteractionAnswer;
  readonly warnings: readonly Warning[];
  /** Whether an earlier request with the same Idempotency-Key stored it. */
  readonly isRepeated: boolean;
}

/**
 * Records one interaction, or repeats the first answer to a retry. An interaction with a missing reference is kept as a
 * rejection before it fails.
 */
export async function recordInteraction(
  parts: InteractionParts,
  { organisationId, requestId, body, idempotencyKey }: InteractionRequest,
): Promise<RecordedInteraction> {
  const warnings = new WarningCounter();
  const added = readInteraction(organisationId, body, warnings);
  const { stored, isRepeated } =
    idempotencyKey === undefined
      ? { stored: await insertWithOthers(parts, added, requestId), isRepeated: false }
      : await recordOnce(parts.pool, added, { requestId, idempotencyKey, known: parts.writer.known });
  return { interaction: interactionAnswer(stored), warnings: warnings.list(), isRepeated };
}

function readInteraction(
  organisationId: string,
  body: Buffer | undefined,
  warnings: WarningCounter,
): NewInteraction {
  if (body === undefined) throw refusal([unreadableRecord.not_an_object], false);
  let isWrapped = false;
  const { values, repeated, unreadable } = findingFault(body, () => {
    const read = reader.read(body, startOfJson(body), (name) => {
      warnings.unknownField(name);
      isWrapped ||= name === 'records';
    });
    endOfBody(body, read.end);
    return read;
  });
  if (unreadable) throw refusal([unreadableRecord[unreadable]], isWrapped);
  const { row, problems } = check(values, repeated);
  if (problems) throw refusal(problems, isWrapped);
  return {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: fieldOf(row, 'item_type') as ItemType,
    itemId: fieldOf(row, 'item_id') as string,
    studentId: fieldOf(row, 'student_id') as string | null,
    row,
    eventTime: checkedEventTime(fieldOf(row, 'event_timestamp') as string | number),
  };
}

function refusal(problems: readonly FieldProblem[], isWrapped: boolean): RequestError {
  const details = problems.map(
    ({ field, code, message }): Detail => ({ field: field ?? 'body', code, message }),
  );
  return new RequestError('invalid_request', { details: isWrapped ? [wrapped, ...details] : details });
}

const wrapped: Detail = {
  field: 'records',
  code: 'unknown_field',
  message: 'is for uploads; an interaction is sent by itself, its fields at the top of the body',
};

function fieldOf(row: Row, field: keyof typeof interaction) {
  return row[fields.indexOf(field)] ?? null;
}

/**
 * Hands it to the writer until it is written. If it was not, a reference should be missing, and that is the answer; if
 * none is missing, the item or student was stored just now, and the write is retried.
 */
async function insertWithOthers(
  { pool, writer }: InteractionParts,
  added: NewInteraction,
  requestId: string,
): Promise<StoredInteraction> {
  for (let attempt = 1; !(await writer.write(added)); attempt++) {
    const missing = await missingReferences(pool, added, writer.known);
    if (missing.length > 0) {
      await retryConflicts(() =>
        inTransaction(pool, (client, sendLast) =>
          keepInteraction(client, sendLast, { requestId, added, problems: missing, recordId: null }),
        ),
      );
      throw refuseMissing(missing);
    }
    if (attempt === limits.interactionAttemptsMax) throw new RequestError('internal');
  }
  return storedForm(added);
}
