import { createHash, randomUUIDv7 } from 'node:crypto';
import { type Detail, RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { canonicalJson } from '../registry/canonical-json.ts';
import { eventTime, type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import { type ResourceType, referenceNotFound } from '../registry/resources.ts';
import { compileCheck, isRecord, type Row } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { claimIdempotencyKey } from '../store/idempotency-keys.ts';
import {
  findInteraction,
  insertInteractions,
  missingReferences,
  type NewInteraction,
  type StoredInteraction,
} from '../store/interactions.ts';
import { type Client, CommitUnconfirmed, inTransaction, type Pool } from '../store/pool.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import type { InteractionWriter } from './interaction-writer.ts';

const check = compileCheck(interaction);
const fields = Object.keys(interaction);

export interface InteractionRequest {
  readonly organisationId: string;
  readonly body: unknown;
  readonly idempotencyKey: string | undefined;
}

export interface InteractionParts {
  readonly pool: Pool;
  readonly writer: InteractionWriter;
}

export interface RecordedInteraction {
  readonly interaction: InteractionAnswer;
  readonly warnings: readonly Warning[];
}

/** Records one interaction, or answers a repeated request as it was answered the first time. */
export async function recordInteraction(
  parts: InteractionParts,
  { organisationId, body, idempotencyKey }: InteractionRequest,
): Promise<RecordedInteraction> {
  const warnings = new WarningCounter();
  const added = readInteraction(organisationId, body, warnings);
  const stored =
    idempotencyKey === undefined
      ? await insertWithOthers(parts, added)
      : await insertOnce(
          parts.pool,
          added,
          idempotencyKey,
          createHash('sha256').update(canonicalJson(body)).digest(),
        );
  return { interaction: interactionAnswer(stored), warnings: warnings.list() };
}

function readInteraction(organisationId: string, body: unknown, warnings: WarningCounter): NewInteraction {
  const { row, problems } = check(body, warnings.unknownField);
  if (problems) {
    const details: Detail[] = problems.map(({ field, code, message }) => ({
      field: field ?? 'body',
      code,
      message,
    }));
    if (isRecord(body) && Object.hasOwn(body, 'records')) details.unshift(wrapped);
    throw new RequestError('invalid_request', { details });
  }
  const instant = eventTime(fieldOf(row, 'event_timestamp') as string | number);
  if (instant === undefined) throw new Error('a checked event_timestamp names no instant');
  return {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: fieldOf(row, 'item_type') as ItemType,
    row,
    eventTime: instant,
  };
}

const wrapped: Detail = {
  field: 'records',
  code: 'unknown_field',
  message: 'is for uploads; an interaction is sent by itself, its fields at the top of the body',
};

function fieldOf(row: Row, field: keyof typeof interaction) {
  return row[fields.indexOf(field)] ?? null;
}

async function insertWithOthers(
  { pool, writer }: InteractionParts,
  added: NewInteraction,
): Promise<StoredInteraction> {
  if (!(await writer.write(added))) throw await danglingReference(pool, added);
  return storedForm(added);
}

async function insertOnce(
  pool: Pool,
  added: NewInteraction,
  idempotencyKey: string,
  bodySha256: Buffer,
): Promise<StoredInteraction> {
  try {
    return await inTransaction(pool, (client) => claimAndInsert(client, added, idempotencyKey, bodySha256));
  } catch (error) {
    if (error instanceof CommitUnconfirmed) throw new RequestError('outcome_unknown', { cause: error });
    if (error instanceof NotWritten) throw await danglingReference(pool, added);
    throw error;
  }
}

/** Rolls the claim back: only what succeeded is remembered. */
class NotWritten extends Error {}

async function claimAndInsert(
  client: Client,
  added: NewInteraction,
  idempotencyKey: string,
  bodySha256: Buffer,
): Promise<StoredInteraction> {
  const now = new Date();
  const claim = await claimIdempotencyKey(client, {
    organisationId: added.organisationId,
    idempotencyKey,
    bodySha256,
    interactionId: added.interactionId,
    now,
    forgottenBefore: new Date(now.getTime() - limits.idempotencyKeyLifeMs),
  });
  if (claim.claimed) {
    const written = await insertInteractions(client, added.organisationId, [added]);
    if (written.size === 0) throw new NotWritten();
    return storedForm(added);
  }
  if (!claim.sameBody) throw new RequestError('idempotency_key_reused');
  const first = await findInteraction(client, added.organisationId, claim.interactionId);
  if (!first) throw new Error('an idempotency key names an interaction that is not there');
  return first;
}

function storedForm({ interactionId, row }: NewInteraction): StoredInteraction {
  const stored: StoredInteraction = { interaction_id: interactionId };
  for (let at = 0; at < fields.length; at++)
    stored[fields[at] as string] = (row[at] ?? null) as StoredInteraction[string];
  return stored;
}

async function danglingReference(
  pool: Pool,
  { organisationId, itemType, row }: NewInteraction,
): Promise<RequestError> {
  const itemId = fieldOf(row, 'item_id') as string;
  const studentId = fieldOf(row, 'student_id') as string | null;
  const missing = await missingReferences(pool, organisationId, itemType, itemId, studentId);
  const details: Detail[] = [];
  if (missing.student) details.push(notFound('student_id', 'customers'));
  if (missing.item) details.push(notFound('item_id', itemTypes[itemType]));
  // Neither is missing where it was stored in this very moment: then sending it again is all there is to say.
  return details.length > 0 ? new RequestError('invalid_request', { details }) : new RequestError('internal');
}

function notFound(field: string, type: ResourceType): Detail {
  return { field, ...referenceNotFound(type) };
}
