import { createHash } from 'node:crypto';
import { addChange } from '../changes/add-change.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed, inTransaction, retryConflicts, type SendLast } from '../postgres/transactions.ts';
import { addCountChange } from '../records/record-counts.ts';
import { addKindChanges, countChange } from '../rejections/rejection-kinds.ts';
import { deleteRejections, lockRejectionsOf } from '../rejections/rejections.ts';
import { claimIdempotencyKey, replaceClaim } from './idempotency-keys.ts';
import {
  findInteraction,
  insertInteraction,
  type NewInteraction,
  type StoredInteraction,
  storedForm,
} from './interaction-rows.ts';
import type { KnownIds } from './known-ids.ts';
import { keepInteraction, missingReferences, refuseMissing } from './missing-references.ts';

export interface Once {
  readonly requestId: string;
  readonly idempotencyKey: string;
  readonly known: KnownIds;
}

export interface RecordedOnce {
  readonly stored: StoredInteraction;
  /** Whether an earlier request stored it, or a replay of its rejection. */
  readonly isRepeated: boolean;
}

/**
 * Records an interaction under its Idempotency-Key. If a reference is missing, the key stays claimed and the rejection
 * has the id that the interaction would have had: the first of a retry and a replay stores it under that id, and the
 * other finds it.
 */
export async function recordOnce(pool: Pool, added: NewInteraction, once: Once): Promise<RecordedOnce> {
  try {
    const done = await retryConflicts(() =>
      inTransaction(pool, (client, sendLast) => claimAndInsert(client, sendLast, added, once)),
    );
    if ('missing' in done) throw refuseMissing(done.missing);
    return done;
  } catch (error) {
    throw error instanceof CommitUnconfirmed ? new RequestError('outcome_unknown', { cause: error }) : error;
  }
}

async function claimAndInsert(client: Client, sendLast: SendLast, sent: NewInteraction, once: Once) {
  const { organisationId } = sent;
  const now = new Date();
  const claim = {
    organisationId,
    idempotencyKey: once.idempotencyKey,
    // A hash of the stored values, so that spaces and the order of fields make no difference.
    bodySha256: createHash('sha256').update(JSON.stringify(sent.row)).digest(),
    interactionId: sent.interactionId,
    now,
    forgottenBefore: new Date(now.getTime() - limits.idempotencyKeyLifeMs),
  };
  const claimed = await claimIdempotencyKey(client, claim);
  if (claimed.claimed) return insertOrKeep(client, sendLast, sent, once);
  const { interactionId, sameBody } = claimed;
  const first = await findInteraction(client, organisationId, interactionId);
  if (first) {
    if (!sameBody) throw new RequestError('idempotency_key_reused');
    return { stored: first, isRepeated: true };
  }
  if (!sameBody) await replaceClaim(client, claim);
  await letGo(client, organisationId, interactionId);
  return insertOrKeep(client, sendLast, { ...sent, interactionId }, once);
}

async function insertOrKeep(
  client: Client,
  sendLast: SendLast,
  added: NewInteraction,
  { requestId, known }: Once,
) {
  const { organisationId, interactionId } = added;
  const problems = await missingReferences(client, added, known);
  if (problems.length > 0) {
    await keepInteraction(client, sendLast, { requestId, added, problems, recordId: interactionId });
    return { missing: problems };
  }
  await insertInteraction(client, added);
  const change = { records: 1, newestUpdated: null, lastUpload: new Date() };
  sendLast((last) => addCountChange(last, { organisationId, type: 'interactions', ...change }));
  const changed = { count: 1, ids: binaryArray('uuid', [interactionId]) };
  sendLast((last) => addChange(last, { organisationId, type: 'interactions', ...changed }));
  return { stored: storedForm(added), isRepeated: false };
}

/** Removes the rejection of an interaction that is sent again. */
async function letGo(client: Client, organisationId: string, interactionId: string): Promise<void> {
  const arrays = [binaryArray('uuid', [interactionId]), binaryArray('timestamptz', [null])];
  const found = await lockRejectionsOf(client, organisationId, 'interactions', { count: 1, arrays });
  const ids = found.map(({ rejection_id }) => rejection_id);
  const changes = new Map<string, number>();
  for (const kindId of (await deleteRejections(client, organisationId, ids)).values())
    countChange(changes, kindId, -1);
  await addKindChanges(client, organisationId, changes);
}
