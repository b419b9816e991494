import { randomUUIDv7 } from 'node:crypto';
import { storeInTransaction, type Work } from '../bookkeeping/store.ts';
import { RequestError } from '../errors.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { erasedPerson } from '../registry/personal.ts';
import { referenceNotFound } from '../registry/resources.ts';
import type { FieldProblem } from '../registry/validate.ts';
import { keepMissing, type NewRejections } from '../rejections/keep-rejections.ts';
import { KindList } from '../rejections/kind-list.ts';
import { countChange, storeKinds } from '../rejections/rejection-kinds.ts';
import { deleteSettled, findRejectionsOf, lockFound } from '../rejections/rejections.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { claimIdempotencyKey, findHolder, replaceClaim } from './idempotency-keys.ts';
import { doneOf, isKeyed } from './interaction-inserts.ts';
import {
  arraysOf,
  findInteraction,
  insertEncoded,
  type KeyedInteraction,
  type NewInteraction,
  type StoredInteraction,
  storedForm,
  userOf,
} from './interaction-rows.ts';
import type { KnownIds } from './known-ids.ts';
import { interactionReferences, missingAmong, referencedBy } from './look-up-references.ts';

export interface Alone {
  readonly requestId: string;
  /** Asked after the suppressions, which may make it forget. */
  readonly references: { readonly known: KnownIds; readonly suppressions: Suppressions };
  /** Whether another body under the same key is refused even if the first was not stored. */
  readonly isFromBrowser: boolean;
  /** Thrown if it would have to be stored now. */
  readonly refusal: RequestError | undefined;
}

export interface Recorded {
  readonly stored: StoredInteraction;
  /** Whether an earlier request stored it, or a replay of its rejection. */
  readonly isRepeated: boolean;
}

/** Stored, or why not: a reference is missing, or the person was erased. */
export type Tried = Recorded | { readonly refused: readonly FieldProblem[] };

const notFound = interactionReferences.map(
  ({ field, type }): FieldProblem => ({ field, ...referenceNotFound(type) }),
);

/**
 * Records an interaction that the writer could not write: a reference is missing, its key was claimed before, or people were
 * erased. An interaction with a missing reference is kept as a rejection; of an erased person nothing is. Its key then stays claimed, and the rejection has the id
 * that the interaction would have had: the first of a retry and a replay stores it under that id, and the other finds it.
 */
export function recordAlone(pool: Pool, added: NewInteraction, alone: Alone): Promise<Tried> {
  return storeInTransaction(pool, async (client) => {
    const erased = await erasedIn(client, added, alone);
    if (erased.length > 0) return { result: { refused: erased }, done: [] };
    return isKeyed(added) ? claimAndInsert(client, added, alone) : insertOrKeep(client, added, alone);
  });
}

async function erasedIn(
  client: Client,
  { organisationId, studentId, row }: NewInteraction,
  { references: { suppressions } }: Alone,
): Promise<FieldProblem[]> {
  const check = await suppressions.checkNow(client, organisationId);
  const ids = { user_id: userOf(row), student_id: studentId };
  const erased = await check.erasedAmong(Object.values(ids).filter((id) => id !== null));
  return Object.entries(ids).flatMap(([field, id]) =>
    id !== null && erased.has(id) ? { field, ...erasedPerson } : [],
  );
}

async function claimAndInsert(client: Client, sent: KeyedInteraction, alone: Alone): Promise<Work<Tried>> {
  const { organisationId } = sent;
  // What may not be stored claims nothing.
  const holder = await (alone.refusal ? findHolder(client, sent) : claimIdempotencyKey(client, sent));
  if (!holder) return insertOrKeep(client, sent, alone);
  const { interactionId, sameBody } = holder;
  const first = await findInteraction(client, organisationId, interactionId);
  // If only stored ones were refused, a visitor could find out which references exist.
  if (!sameBody && (first || alone.isFromBrowser)) throw new RequestError('idempotency_key_reused');
  if (first) return { result: { stored: first, isRepeated: true }, done: [] };
  if (!sameBody) await replaceClaim(client, sent);
  const removed = await removeRejection(client, organisationId, interactionId);
  return insertOrKeep(client, { ...sent, interactionId }, alone, removed);
}

/** `rejected` has the change in the number of rejections so far. */
async function insertOrKeep(
  client: Client,
  added: NewInteraction,
  { requestId, references, refusal }: Alone,
  rejected = new Map<string, number>(),
): Promise<Work<Tried>> {
  if (refusal) throw refusal;
  const { organisationId } = added;
  const absent = await missingAmong(client, organisationId, referencedBy([added]), references.known);
  const missing = notFound.filter((_, at) => (absent[at]?.size ?? 0) > 0);
  if (missing.length > 0) {
    countChange(rejected, await keepRejection(client, added, missing, requestId), 1);
    return {
      result: { refused: missing },
      done: [{ organisationId, stored: null, rejected, receipt: null }],
    };
  }
  await insertEncoded(client, organisationId, { count: 1, arrays: arraysOf([added]) });
  const done = { ...doneOf({ organisationId, interactions: [added] }), rejected };
  return { result: { stored: storedForm(added), isRepeated: false }, done: [done] };
}

/** Returns the kind of the rejection. With a key, it has the id under which the interaction will be stored. */
async function keepRejection(
  client: Client,
  added: NewInteraction,
  problems: readonly FieldProblem[],
  requestId: string,
): Promise<string> {
  const { organisationId, interactionId } = added;
  const type = 'interactions';
  // There are so few combinations of missing references that the number of kinds need not be checked.
  const kinds = new KindList(type, false);
  const kindId = kinds.idOf(problems);
  const [, ...arrays] = arraysOf([added]);
  const rejections: NewRejections = {
    count: 1,
    rejectionIds: binaryArray('uuid', [randomUUIDv7()]),
    kindIds: binaryArray('uuid', [kindId]),
    indices: binaryArray('int4', [0]),
    recordIds: binaryArray('uuid', [isKeyed(added) ? interactionId : null]),
  };
  await Promise.all([
    storeKinds(client, organisationId, type, kinds.all),
    keepMissing(client, organisationId, type, requestId, { count: 1, arrays }, rejections),
  ]);
  return kindId;
}

/** Removes the rejection of an interaction that is sent again; returns the change in the number of each kind. */
async function removeRejection(
  client: Client,
  organisationId: string,
  interactionId: string,
): Promise<Map<string, number>> {
  const arrays = [binaryArray('uuid', [interactionId]), binaryArray('timestamptz', [null])];
  const find = () => findRejectionsOf(client, organisationId, 'interactions', { count: 1, arrays });
  const removed = new Map<string, number>();
  await deleteSettled(client, organisationId, await lockFound(client, organisationId, find), removed);
  return removed;
}
