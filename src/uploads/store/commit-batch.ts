// uploads/store/: stores a checked batch in PostgreSQL in one transaction.

import type { ReceiptAddition, ReceiptHead } from '../../bookkeeping/store.ts';
import { type Stored, storeInTransaction, type Work } from '../../bookkeeping/store.ts';
import { RequestError } from '../../errors.ts';
import type { KnownReferences } from '../../interactions/known-ids.ts';
import { limits } from '../../limits.ts';
import { freeMemory, latestInstant } from '../../postgres/binary/encoded-rows.ts';
import { type Client, isLockTimeout, isUnavailable, type Pool } from '../../postgres/pool.ts';
import { CommitUnconfirmed } from '../../postgres/transactions.ts';
import type { BatchAnswer, BatchStatus } from '../../receipts/batch-answer.ts';
import { answerOf } from '../../receipts/receipts.ts';
import type { Mode } from '../../registry/fields.ts';
import { isoOf } from '../../registry/times.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import { enterRun, type RunPart } from '../../runs/enter-run.ts';
import type { Step } from '../../traces/step.ts';
import { batchAnswer, repeatedCounts, type WrittenBatch } from '../answer/answer.ts';
import {
  type BatchProblem,
  failed,
  notStored,
  type Outcome,
  outcomeUnknownOf,
  runEnded,
} from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { idOfRow, outcomesOf, type StoredRows, settleRejections, storeRows } from './store-batch.ts';
import { storeInteractions } from './store-interactions.ts';
import { claimForUpload } from './upload-idempotency-keys.ts';

interface BatchEvents {
  /** Detects batches that no longer finish. */
  readonly watch: (commit: () => Promise<WrittenBatch>) => Promise<WrittenBatch>;
  readonly step: Step;
  readonly onStored: (durationMs: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Stores an upload's batches in the order sent, each in its own transaction. */
export async function ingestRequest(
  pool: Pool,
  progress: Progress,
  checkedBatches: readonly CheckedBatch[],
  { watch, step, onStored, onError }: BatchEvents,
): Promise<readonly WrittenBatch[]> {
  const batches: WrittenBatch[] = [];
  let databaseAway = false;
  for (const [at, checked] of checkedBatches.entries()) {
    try {
      if (databaseAway) throw new DatabaseAway();
      const startedMs = performance.now();
      const commit = () => commitBatch(pool, progress, at + 1, checked);
      const attributes = { 'intake.batch': at + 1, 'intake.records': checked.received };
      batches.push(await step('batch', () => watch(commit), attributes));
      onStored(performance.now() - startedMs);
    } catch (error) {
      const isOpen = error instanceof CommitUnconfirmed;
      if (isOpen || isUnavailable(error)) progress.references.forgetKnown();
      // Nothing has been stored yet, so the whole request can fail.
      if (at === 0 && (error instanceof RequestError || isUnavailable(error))) throw error;
      databaseAway ||= isUnavailable(error);
      const hasRunEnded = error instanceof RequestError && error.code === 'run_ended';
      if (!(error instanceof DatabaseAway) && !hasRunEnded) onError(error);
      const problem = isOpen ? outcomeUnknownOf(progress.type) : hasRunEnded ? runEnded : notStored;
      batches.push(brokenBatch(progress, at + 1, checked, problem));
    }
    // This frees all of the batch's buffers, because they share their memory.
    freeMemory(checked.sample);
  }
  return batches;
}

/** Records that had already failed keep their own errors. */
function brokenBatch(
  { requestId, type }: Progress,
  number: number,
  checked: CheckedBatch,
  broken: BatchProblem,
): WrittenBatch {
  const answer = batchAnswer({
    number,
    requestId,
    type,
    start: (number - 1) * limits.recordsPerBatch,
    outcomes: outcomesOf(checked, (row) => failed(idOfRow(type, checked.rows, row), [broken])),
    warnings: checked.warnings,
    ...(broken !== runEnded && { broken }),
  });
  return { status: answer.status, text: JSON.stringify(answer), counts: answer.data.counts };
}

class DatabaseAway extends Error {}

export interface Progress {
  readonly organisationId: string;
  readonly keyId: string;
  readonly type: UploadType;
  /** Null for interactions, and for records that are moved here. */
  readonly mode: Mode | null;
  readonly run: RunPart | null;
  readonly bodyBytes: number;
  readonly batchCount: number;
  readonly startedMs: number;
  readonly idempotency: { readonly key: string; readonly bodySha256: Buffer } | undefined;
  readonly references: KnownReferences;
  /** Invalid interactions from a browser are not kept, because visitors could fill the disk with them. */
  readonly isFromBrowser?: boolean;
  /** The earlier request's id, once the request turns out to be a retry with the same Idempotency-Key. */
  requestId: string;
}

export async function commitBatch(
  pool: Pool,
  progress: Progress,
  number: number,
  checked: CheckedBatch,
): Promise<WrittenBatch> {
  const { organisationId, type, run, references } = progress;
  const start = (number - 1) * limits.recordsPerBatch;
  return storeInTransaction(pool, async (client, attempt): Promise<Work<WrittenBatch>> => {
    const store = async () => {
      const { answer, key } = await claim(client, progress, number);
      if (answer) return answer;
      // Nothing may be sent after a refusal, because it would not be part of the transaction. What is stored is answered again,
      // even if the run has ended.
      if (run) await enterRun(client, organisationId, run, type);
      return { ...(await storeChecked(client, organisationId, type, checked, references)), key };
    };
    // Sent together. If the first statement fails, the others fail too, and the first error is the cause.
    const entered = enterBatch(client, attempt, organisationId, type);
    const [, stored] = await Promise.all([entered, store()]);
    if ('text' in stored)
      return { result: { ...stored, counts: repeatedCounts(checked.received) }, done: [] };
    const made = batchAnswer({
      number,
      requestId: progress.requestId,
      type,
      start,
      outcomes: outcomesOf(stored.checked, (row) => stored.outcomes[row] as Outcome),
      warnings: checked.warnings,
      interactionIds: stored.interactionIds,
    });
    const { rejected, writes } = await settleRejections(client, { ...progress, start }, stored);
    const receipt = { head: headOf(progress, stored.key), added: additionOf(progress.startedMs, made) };
    return {
      result: { status: made.status, text: receipt.added.answer, counts: made.data.counts },
      done: [{ organisationId, stored: storedOf(type, checked, stored, made), rejected, receipt }],
      writes,
    };
  });
}

export function storeChecked(
  client: Client,
  organisationId: string,
  type: UploadType,
  checked: CheckedBatch,
  references: KnownReferences,
  givenIds?: readonly (string | null)[],
): Promise<StoredRows> {
  return type === 'interactions'
    ? storeInteractions(client, organisationId, checked, references, givenIds)
    : storeRows({ client, organisationId, type, mode: checked.mode }, checked, references.suppressions);
}

interface Claimed {
  readonly answer: Omit<WrittenBatch, 'counts'> | undefined;
  /** In the form in which the receipt may contain it. */
  readonly key: string | null;
}

/**
 * If an earlier request holds the key, its stored batches are answered from its receipt, and the others are stored. The
 * key stays locked until the batch commits, so a concurrent retry of the same batch waits and then finds the response.
 * Later batches of a request only have to lock the key. A retry that joined the request may be ahead of it.
 */
async function claim(client: Client, progress: Progress, number: number): Promise<Claimed> {
  const { organisationId, type, idempotency, requestId } = progress;
  if (!idempotency) return { answer: undefined, key: null };
  const now = new Date();
  const wanted = {
    organisationId,
    idempotencyKey: idempotency.key,
    requestId,
    type,
    bodySha256: idempotency.bodySha256,
    now,
    forgottenBefore: new Date(now.getTime() - limits.idempotencyKeyLifeMs),
  };
  const { suppressions } = progress.references;
  const { holder, key } = await claimForUpload(client, wanted, number > 1, suppressions);
  if (!holder) return { answer: undefined, key };
  if (!holder.sameBody) throw new RequestError('idempotency_key_reused');
  progress.requestId = holder.requestId;
  const known = await answerOf(client, organisationId, holder.requestId, number);
  const answer = known && {
    status: known.status as BatchStatus,
    text: known.answer,
    isRepeated: true as const,
  };
  return { answer, key };
}

function headOf(
  { organisationId, requestId, type, mode, run, keyId, bodyBytes, batchCount }: Progress,
  idempotencyKey: string | null,
): ReceiptHead {
  return {
    organisationId,
    requestId,
    operation: 'upload',
    type,
    mode,
    run,
    keyId,
    idempotencyKey,
    bodyBytes,
    batchCount,
  };
}

export function additionOf(startedMs: number, answer: BatchAnswer): ReceiptAddition {
  return {
    status: answer.status,
    durationMs: Math.round(performance.now() - startedMs),
    batch: answer.batch,
    counts: answer.data.counts,
    answer: JSON.stringify(answer),
  };
}

export function storedOf(
  type: UploadType,
  { rows }: CheckedBatch,
  { outcomes, changed }: StoredRows,
  { data }: BatchAnswer,
): Stored {
  const updated = rows.arrays[Object.keys(sentFields(type)).indexOf('updated')];
  const isLeftOut = (row: number) => outcomes[row]?.kind === 'failed' || outcomes[row]?.kind === 'stale';
  const newest = updated && latestInstant(updated, rows.count, isLeftOut);
  return {
    type,
    changed,
    records: data.counts.created,
    newestUpdated: newest === undefined ? null : isoOf(newest),
    isReceived: true,
  };
}

/**
 * Batches of a type share the lock. A retry takes it alone, because later batches could otherwise keep overtaking it
 * until it runs out of attempts. This must be the first statement of a transaction, because waiting while holding other
 * locks could cause a deadlock. Statements that are sent after it wait with it.
 */
export async function enterBatch(
  client: Client,
  attempt: number,
  organisationId: string,
  type: string,
): Promise<void> {
  const isAlone = attempt > 1;
  await client.query({
    name: isAlone ? 'enter batch alone' : 'enter batch',
    text: `select pg_advisory_xact_lock${isAlone ? '' : '_shared'}(hashtextextended($1, 0))`,
    values: [`batches ${organisationId} ${type}`],
  });
}

/** Replays of a type take turns, batch by batch. If it returns false, the transaction has failed. */
export async function waitForTurn(client: Client, organisationId: string, type: string): Promise<boolean> {
  try {
    await Promise.all([
      client.query(`set local lock_timeout = ${limits.replayTurnMs}`),
      client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `replay ${organisationId} ${type}`,
      ]),
      client.query(`set local lock_timeout = ${client.lockWaitMs ?? 0}`),
    ]);
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}
