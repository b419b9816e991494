import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type ResourceType, resources } from '../registry/resources.ts';
import { isoOf } from '../registry/times.ts';
import { latestInstant } from '../store/encoded-rows.ts';
import { type Client, inTransaction, type Pool } from '../store/pool.ts';
import { addToReceipt, answerOf, type ReceiptAddition, type ReceiptHead } from '../store/receipts.ts';
import { addCountChange, type CountChange } from '../store/record-counts.ts';
import { claimForUpload, holderOf, type UploadHolder } from '../store/upload-idempotency-keys.ts';
import { type BatchAnswer, batchAnswer } from './answer.ts';
import type { CheckedBatch } from './batch-builder.ts';
import type { Outcome } from './outcome.ts';
import { settleRejections } from './settle-rejections.ts';
import { outcomesOf, retryConflicts, storeRows } from './store-batch.ts';

/** A request whose batches are stored one after another. */
export interface Progress {
  readonly organisationId: string;
  readonly keyId: string;
  readonly type: ResourceType;
  readonly bodyBytes: number;
  readonly batchCount: number;
  /** By the clock that only goes forward. */
  readonly startedMs: number;
  readonly idempotency: { readonly key: string; readonly bodySha256: Buffer } | undefined;
  /** Another one's, where the same request was sent before under the same Idempotency-Key. */
  requestId: string;
}

/**
 * Stores one batch and everything that is said about it in one transaction: its records, the rejections of those that
 * failed, the difference to the counts, and the receipt.
 */
export async function commitBatch(
  pool: Pool,
  progress: Progress,
  number: number,
  checked: CheckedBatch,
): Promise<BatchAnswer> {
  const { organisationId, type } = progress;
  const start = (number - 1) * limits.recordsPerBatch;
  return retryConflicts((mayGuess) =>
    inTransaction(pool, async (client, sendLast) => {
      const known = progress.idempotency && (await claim(client, progress, number));
      if (known) return known;
      const stored = await storeRows(client, organisationId, type, checked, mayGuess);
      const made = batchAnswer({
        number,
        batchId: randomUUIDv7(),
        requestId: progress.requestId,
        type,
        start,
        outcomes: outcomesOf(checked, (place) => stored.outcomes[place] as Outcome),
        warnings: checked.warnings,
        broken: undefined,
      });
      const rejections = await settleRejections(client, { ...progress, start }, checked, stored);
      sendLast((last) =>
        addCountChange(
          last,
          organisationId,
          type,
          changeOf(type, checked, stored.outcomes, made, rejections),
        ),
      );
      for (const statement of addToReceipt(headOf(progress), additionOf(progress.startedMs, made)))
        sendLast(statement);
      return made;
    }),
  );
}

/**
 * Claims the Idempotency-Key, or joins the request that holds it. What that one has stored is answered from its receipt
 * without touching anything. Otherwise the key stays locked until the batch is committed, so a twin that is at the same
 * batch waits, and then finds its answer.
 */
async function claim(client: Client, progress: Progress, number: number): Promise<BatchAnswer | undefined> {
  const { organisationId, type, idempotency, requestId } = progress;
  if (!idempotency) return undefined;
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
  const join = async (holder: UploadHolder) => {
    if (!holder.sameBody) throw new RequestError('idempotency_key_reused');
    progress.requestId = holder.requestId;
    const answer = await answerOf(client, organisationId, holder.requestId, number);
    return answer === undefined ? undefined : (JSON.parse(answer) as BatchAnswer);
  };
  const first = await holderOf(client, wanted);
  const answered = first && (await join(first));
  if (answered) return answered;
  await claimForUpload(client, wanted);
  const holder = await holderOf(client, wanted);
  if (!holder) throw new Error('an idempotency key vanished while it was locked');
  return join(holder);
}

function headOf({
  organisationId,
  requestId,
  type,
  keyId,
  bodyBytes,
  batchCount,
  idempotency,
}: Progress): ReceiptHead {
  const idempotencyKey = idempotency?.key ?? null;
  return {
    organisationId,
    requestId,
    operation: 'upload',
    type,
    keyId,
    idempotencyKey,
    bodyBytes,
    batchCount,
  };
}

/** What a batch adds to the receipt of its request. */
export function additionOf(startedMs: number, answer: BatchAnswer): ReceiptAddition {
  return {
    status: answer.status,
    durationMs: Math.round(performance.now() - startedMs),
    batch: answer.batch,
    counts: answer.data.counts,
    answer: JSON.stringify(answer),
  };
}

/** What a batch changes about how much there is. */
export function changeOf(
  type: ResourceType,
  { rows }: CheckedBatch,
  outcomes: readonly Outcome[],
  { data }: BatchAnswer,
  rejections: number,
): CountChange {
  const updatedAt = Object.keys(resources[type].fields).indexOf('updated');
  const isLeftOut = (place: number) =>
    outcomes[place]?.kind === 'failed' || outcomes[place]?.kind === 'stale';
  const newest = latestInstant(rows.arrays[updatedAt] as Buffer, rows.count, isLeftOut);
  return {
    records: data.counts.created,
    rejections,
    newestUpdated: newest === undefined ? null : isoOf(newest),
    lastUpload: new Date(),
  };
}
