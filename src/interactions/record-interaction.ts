import { createHash, randomUUIDv7 } from 'node:crypto';
import { type Detail, RequestError } from '../errors.ts';
import { ObjectReader } from '../json/object-reader.ts';
import { endOfBody, findingFault, startOfJson } from '../json/parse-body.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed, inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { eventTime, type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import { type ResourceType, referenceNotFound } from '../registry/resources.ts';
import { type FieldProblem, makeCheck, type Row, unreadableRecord } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import { type Claimed, claimIdempotencyKey } from './idempotency-keys.ts';
import {
  checkAndInsertInteractions,
  findInteraction,
  missingReferences,
  type NewInteraction,
  type StoredInteraction,
} from './interaction-rows.ts';
import type { InteractionWriter } from './interaction-writer.ts';

const fields = Object.keys(interaction);
const reader = new ObjectReader(fields);
const check = makeCheck(interaction);

export interface InteractionRequest {
  readonly organisationId: string;
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
  /** Whether it was stored by an earlier request with the same Idempotency-Key. */
  readonly isRepeated: boolean;
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
      : await insertOnce(parts.pool, added, idempotencyKey);
  const isRepeated = stored.interaction_id !== added.interactionId;
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
  const instant = eventTime(fieldOf(row, 'event_timestamp') as string | number);
  if (instant === undefined) throw new Error('a checked event_timestamp names no instant');
  return {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: fieldOf(row, 'item_type') as ItemType,
    itemId: fieldOf(row, 'item_id') as string,
    studentId: fieldOf(row, 'student_id') as string | null,
    row,
    eventTime: instant,
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

async function insertWithOthers(
  { pool, writer }: InteractionParts,
  added: NewInteraction,
): Promise<StoredInteraction> {
  await untilReferencesExist(pool, added, () => writer.write(added));
  return storedForm(added);
}

async function insertOnce(
  pool: Pool,
  added: NewInteraction,
  idempotencyKey: string,
): Promise<StoredInteraction> {
  // What will be stored, so that neither spaces nor the order of fields make a difference.
  const bodySha256 = createHash('sha256').update(JSON.stringify(added.row)).digest();
  let stored: StoredInteraction | undefined;
  await untilReferencesExist(pool, added, async () => {
    stored = await claimAndInsert(pool, added, idempotencyKey, bodySha256);
    return stored !== undefined;
  });
  return stored as StoredInteraction;
}

/**
 * Runs `write` until it has written. Where it has not, a reference should be missing, and that is the answer; if none is,
 * the item or the student was stored in this very moment, and it is tried again.
 */
async function untilReferencesExist(
  pool: Pool,
  added: NewInteraction,
  write: () => Promise<boolean>,
): Promise<void> {
  for (let attempt = 1; !(await write()); attempt++) {
    const details = await missingDetails(pool, added);
    if (details.length > 0) throw new RequestError('invalid_request', { details });
    if (attempt === limits.interactionAttemptsMax) throw new RequestError('internal');
  }
}

/** Undefined, and nothing is claimed, where a reference is missing: only what succeeded is remembered. */
async function claimAndInsert(
  pool: Pool,
  added: NewInteraction,
  idempotencyKey: string,
  bodySha256: Buffer,
): Promise<StoredInteraction | undefined> {
  const now = new Date();
  const claim = {
    organisationId: added.organisationId,
    idempotencyKey,
    bodySha256,
    interactionId: added.interactionId,
    now,
    forgottenBefore: new Date(now.getTime() - limits.idempotencyKeyLifeMs),
  };
  try {
    return await retryConflicts(() =>
      inTransaction(pool, async (client) => {
        const claimed = await claimIdempotencyKey(client, claim);
        if (!claimed.claimed) return firstAnswer(client, added.organisationId, claimed);
        const written = await checkAndInsertInteractions(client, added.organisationId, [added]);
        if (written.size === 0) throw new NotWritten();
        return storedForm(added);
      }),
    );
  } catch (error) {
    if (error instanceof NotWritten) return undefined;
    throw error instanceof CommitUnconfirmed ? new RequestError('outcome_unknown', { cause: error }) : error;
  }
}

/** Rolls the claim back. */
class NotWritten extends Error {}

async function firstAnswer(
  client: Client,
  organisationId: string,
  { interactionId, sameBody }: Claimed & { readonly claimed: false },
): Promise<StoredInteraction> {
  if (!sameBody) throw new RequestError('idempotency_key_reused');
  const first = await findInteraction(client, organisationId, interactionId);
  if (!first) throw new Error('an idempotency key names an interaction that is not there');
  return first;
}

function storedForm({ interactionId, row }: NewInteraction): StoredInteraction {
  const stored: StoredInteraction = { interaction_id: interactionId };
  for (let at = 0; at < fields.length; at++)
    stored[fields[at] as string] = (row[at] ?? null) as StoredInteraction[string];
  return stored;
}

async function missingDetails(
  pool: Pool,
  { organisationId, itemType, itemId, studentId }: NewInteraction,
): Promise<Detail[]> {
  const missing = await missingReferences(pool, organisationId, itemType, itemId, studentId);
  return [
    ...(missing.student ? [notFound('student_id', 'customers')] : []),
    ...(missing.item ? [notFound('item_id', itemTypes[itemType])] : []),
  ];
}

function notFound(field: string, type: ResourceType): Detail {
  return { field, ...referenceNotFound(type) };
}
