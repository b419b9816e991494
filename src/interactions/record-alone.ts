import { randomUUIDv7 } from 'node:crypto';
import { storeInTransaction, type Work } from '../bookkeeping/store.ts';
import { RequestError } from '../errors.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { beginAgainUnless } from '../postgres/transactions.ts';
import type { FieldProblem } from '../registry/fields.ts';
import { erasedPerson, peopleOf } from '../registry/personal.ts';
import { referenceNotFound } from '../registry/resources.ts';
import { personalFields } from '../registry/upload-types.ts';
import { keepRejections, type NewRejections } from '../rejections/keep-rejections.ts';
import { KindList } from '../rejections/kind-list.ts';
import { recordWriter } from '../rejections/record-json.ts';
import { countChange, storeKinds } from '../rejections/rejection-kinds.ts';
import { deleteSettled, findRejectionsOf, lockFound } from '../rejections/rejections.ts';
import { openIdsAmong } from '../suppression/hidden-ids.ts';
import { claimIdempotencyKey, findHolder, replaceClaim } from './idempotency-keys.ts';
import { doneOf, isKeyed } from './interaction-inserts.ts';
import {
  arraysOf,
  findOrHidden,
  insertEncoded,
  type KeyedInteraction,
  type NewInteraction,
  type StoredInteraction,
  storedForm,
  userOf,
  withoutUser,
} from './interaction-rows.ts';
import type { KnownReferences } from './known-ids.ts';
import { interactionReferences, missingAmong, referencedBy } from './look-up-references.ts';

export interface Alone {
  readonly requestId: string;
  readonly references: KnownReferences;
  /** A different body with the same Idempotency-Key is then refused even if the first body was not stored. */
  readonly isFromBrowser: boolean;
  readonly refusal: RequestError | undefined;
}

export interface Recorded {
  readonly stored: StoredInteraction;
  /** Whether an earlier request, or a replay of that request's rejection, stored the interaction. */
  readonly isRepeated: boolean;
}

/** Refused because a reference is missing, or the person was erased. */
type Tried = Recorded | { readonly refused: readonly FieldProblem[] };

const notFound = interactionReferences.map(
  ({ field, type }): FieldProblem => ({ field, ...referenceNotFound(type) }),
);

/**
 * For interactions with a missing reference, a claimed key or an erased person, which the writer cannot write. One with
 * a missing reference is kept as a rejection. Its key stays claimed, and both a retry and a replay use the id that it
 * would have had, so the first of them stores the interaction and the other finds it.
 */
export function recordAlone(pool: Pool, added: NewInteraction, alone: Alone): Promise<Tried> {
  return storeInTransaction(pool, async (client) => {
    const { erased, isTheirs } = await erasedIn(client, added, alone);
    if (isTheirs) return refuseErased(client, added, alone, erased);
    const kept = erased.length > 0 ? withoutUser(added) : added;
    return isKeyed(kept) ? claimAndInsert(client, kept, alone) : insertOrKeep(client, kept, alone);
  });
}

/** `isTheirs` is true if the interaction belongs to one of these people. */
async function erasedIn(
  client: Client,
  added: NewInteraction,
  { references: { suppressions } }: Alone,
): Promise<{ readonly erased: FieldProblem[]; readonly isTheirs: boolean }> {
  const check = await suppressions.checkNow(client, added.organisationId);
  const ids = idsIn(added);
  const ofErased = await check.erasedAmong(Object.values(ids).filter((id) => id !== null));
  return {
    erased: problemsOf(ids, ofErased),
    isTheirs: peopleOf(personalFields('interactions'), (field) => ids[field]).some((id) => ofErased.has(id)),
  };
}

type Ids = Readonly<Record<string, string | null>>;

function idsIn({ studentId, row }: NewInteraction): Ids {
  return { user_id: userOf(row), student_id: studentId };
}

function problemsOf(ids: Ids, ofErased: ReadonlySet<string>): FieldProblem[] {
  return Object.entries(ids).flatMap(([field, id]) =>
    id !== null && ofErased.has(id) ? { field, ...erasedPerson } : [],
  );
}

/** A browser's key is claimed as usual. Otherwise a visitor could find out who was erased by reusing the key. */
async function refuseErased(
  client: Client,
  added: NewInteraction,
  alone: Alone,
  erased: readonly FieldProblem[],
): Promise<Work<Tried>> {
  if (alone.isFromBrowser) {
    const holder = isKeyed(added) ? await claimOrFind(client, added, alone) : undefined;
    if (holder && !holder.sameBody) throw new RequestError('idempotency_key_reused');
    if (alone.refusal && !holder) throw alone.refusal;
  }
  return { result: { refused: erased }, done: [] };
}

/** An interaction that may not be stored does not claim a key. */
function claimOrFind(client: Client, keyed: KeyedInteraction, { refusal, references }: Alone) {
  return refusal ? findHolder(client, keyed) : claimIdempotencyKey(client, keyed, references.suppressions);
}

async function claimAndInsert(client: Client, sent: KeyedInteraction, alone: Alone): Promise<Work<Tried>> {
  const { organisationId } = sent;
  const holder = await claimOrFind(client, sent, alone);
  if (!holder) return insertOrKeep(client, sent, alone);
  const { interactionId, sameBody } = holder;
  const first = await findOrHidden(client, organisationId, interactionId);
  // Refusing only after the first body was stored would let a visitor find out which references exist.
  if (!sameBody && (first !== undefined || alone.isFromBrowser))
    throw new RequestError('idempotency_key_reused');
  if (first === null) return refuseHidden(client, sent);
  if (first) return { result: { stored: first, isRepeated: true }, done: [] };
  if (!sameBody) await replaceClaim(client, sent, holder);
  const removed = await removeRejection(client, organisationId, interactionId);
  return insertOrKeep(client, { ...sent, interactionId }, alone, removed);
}

/**
 * Refuses a hidden interaction of which no id is suppressed, because the sweep has not found all of the person's ids
 * yet.
 */
async function refuseHidden(client: Client, sent: KeyedInteraction): Promise<Work<Tried>> {
  const ids = idsIn(sent);
  const asked = Object.values(ids).filter((id) => id !== null);
  const refused = problemsOf(ids, await openIdsAmong(client, sent.organisationId, asked));
  beginAgainUnless(refused.length > 0, 'a hidden interaction was erased meanwhile');
  return { result: { refused }, done: [] };
}

/** `rejected` contains the changes in the number of rejections so far. */
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

/** Returns the kind. If the interaction has a key, its rejection gets the id under which it will be stored. */
async function keepRejection(
  client: Client,
  added: NewInteraction,
  problems: readonly FieldProblem[],
  requestId: string,
): Promise<string> {
  const { organisationId, interactionId } = added;
  const type = 'interactions';
  // There are so few combinations of missing references that the number of kinds does not have to be checked.
  const kinds = new KindList(type, false);
  const kindId = kinds.idOf(problems);
  const [, ...arrays] = arraysOf([added]);
  const write = recordWriter(type, { count: 1, arrays });
  const rejections: NewRejections = {
    count: 1,
    rejectionIds: binaryArray('uuid', [randomUUIDv7()]),
    kindIds: binaryArray('uuid', [kindId]),
    requestIds: binaryArray('uuid', [requestId]),
    indices: binaryArray('int4', [0]),
    recordIds: binaryArray('uuid', [isKeyed(added) ? interactionId : null]),
    updated: binaryArray('timestamptz', [null]),
    texts: binaryArray('text', [write(0)]),
    modes: binaryArray('text', ['replace']),
  };
  await Promise.all([
    storeKinds(client, organisationId, type, kinds.all),
    keepRejections(client, organisationId, type, rejections),
  ]);
  return kindId;
}

/** For an interaction that is sent again. Returns the change in the count of each kind. */
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
