import { hash, randomUUIDv7 } from 'node:crypto';
import { type Detail, invalidRequest, RequestError } from '../errors.ts';
import { ObjectReader } from '../json/object-reader.ts';
import { endOfBody, findingFault, startOfJson } from '../json/parse-body.ts';
import type { Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import { checkedEventTime, type ItemType, interaction } from '../registry/interaction.ts';
import { type FieldProblem, makeCheck, type Row, unreadableRecord } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import { type NewInteraction, storedForm } from './interaction-rows.ts';
import type { InteractionWriter } from './interaction-writer.ts';
import { type Alone, type Recorded, recordAlone } from './record-alone.ts';

const fields = Object.keys(interaction);
const userAt = fields.indexOf('user_id');
const reader = new ObjectReader(fields);
const check = makeCheck(interaction);

interface InteractionRequest {
  readonly organisationId: string;
  readonly requestId: string;
  readonly body: Buffer | undefined;
  readonly idempotencyKey: string | undefined;
  /** With a browser key, the response must not reveal whether the references exist or the person was erased. */
  readonly isFromBrowser?: boolean;
  /** The organisation may not store more data. Retries of stored interactions still succeed. */
  readonly refusal?: RequestError | undefined;
}

interface InteractionParts {
  readonly pool: Pool;
  readonly writer: InteractionWriter;
}

interface RecordedInteraction {
  readonly interaction: InteractionAnswer;
  readonly warnings: readonly Warning[];
  /** An earlier request with the same Idempotency-Key stored the interaction. */
  readonly isRepeated: boolean;
}

/** Keeps an interaction with a missing reference as a rejection, and fails, unless a browser key was used. */
export async function recordInteraction(
  parts: InteractionParts,
  { organisationId, requestId, body, idempotencyKey, isFromBrowser = false, refusal }: InteractionRequest,
): Promise<RecordedInteraction> {
  const warnings = new WarningCounter();
  const { read, hashed } = readInteraction(organisationId, body, warnings);
  const bodySha256 = () => `\\x${hash('sha256', JSON.stringify(hashed))}`;
  const added =
    idempotencyKey === undefined
      ? read
      : { ...read, claim: { key: idempotencyKey, bodySha256: bodySha256() } };
  const { stored, isRepeated } = await write(parts, added, { requestId, isFromBrowser, refusal }).catch(
    (error: unknown) => {
      throw error instanceof CommitUnconfirmed
        ? new RequestError('outcome_unknown', { cause: error })
        : error;
    },
  );
  return { interaction: interactionAnswer(stored), warnings: warnings.list(), isRepeated };
}

async function write(
  { pool, writer }: InteractionParts,
  added: NewInteraction,
  alone: Omit<Alone, 'references'>,
): Promise<Recorded> {
  const recorded = { stored: storedForm(added), isRepeated: false };
  if (!alone.refusal && (await writer.write(added))) return recorded;
  const tried = await recordAlone(pool, added, { ...alone, references: writer.references });
  if (!('refused' in tried)) return tried;
  if (alone.isFromBrowser) return recorded;
  throw refusal(tried.refused, false);
}

interface Read {
  readonly read: NewInteraction;
  /** Identifies the body. Whitespace and the order of fields make no difference. */
  readonly hashed: Row;
}

function readInteraction(organisationId: string, body: Buffer | undefined, warnings: WarningCounter): Read {
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
  const read = {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: fieldOf(row, 'item_type') as ItemType,
    itemId: fieldOf(row, 'item_id') as string,
    studentId: fieldOf(row, 'student_id') as string | null,
    row,
    eventTime: checkedEventTime(fieldOf(row, 'event_timestamp') as string | number),
  };
  // Earlier releases stored and hashed a user_id as it was sent, and their retries must match.
  const sent = values[userAt];
  const isRewritten = typeof sent === 'string' && sent !== row[userAt];
  return { read, hashed: isRewritten ? row.with(userAt, sent) : row };
}

function refusal(problems: readonly FieldProblem[], isWrapped: boolean): RequestError {
  const details = problems.map(
    ({ field, code, message }): Detail => ({ field: field ?? 'body', code, message }),
  );
  return invalidRequest(...(isWrapped ? [wrapped, ...details] : details));
}

const wrapped: Detail = {
  field: 'records',
  code: 'unknown_field',
  message: 'is for uploads; send the fields of a single interaction at the top level of the body',
};

function fieldOf(row: Row, field: keyof typeof interaction) {
  return row[fields.indexOf(field)] ?? null;
}
