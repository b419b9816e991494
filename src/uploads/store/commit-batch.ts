import type { ReceiptAddition, ReceiptHead } from '../../bookkeeping/receipt-entry.ts';
import { type Stored, storeInTransaction, type Work } from '../../bookkeeping/store.ts';
import { RequestError } from '../../errors.ts';
import type { KnownReferences } from '../../interactions/known-ids.ts';
import { limits } from '../../limits.ts';
import { latestInstant } from '../../postgres/binary/encoded-rows.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import type { BatchAnswer, BatchStatus } from '../../receipts/batch-answer.ts';
import { answerOf } from '../../receipts/receipts.ts';
import { isoOf } from '../../registry/times.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import { batchAnswer, repeatedCounts, type WrittenBatch } from '../answer/answer.ts';
import type { Outcome } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { enterBatch } from './batch-locks.ts';
import { settleRejections } from './settle-rejections.ts';
import { outcomesOf, type StoredRows, storeRows } from './store-batch.ts';
import { storeInteractions } from './store-interactions.ts';
import { claimForUpload } from './upload-idempotency-keys.ts';

export interface Progress {
  readonly organisationId: string;
  readonly keyId: string;
  readonly type: UploadType;
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
  const { organisationId, type, references } = progress;
  const start = (number - 1) * limits.recordsPerBatch;
  return storeInTransaction(pool, async (client, attempt): Promise<Work<WrittenBatch>> => {
    const store = async () => {
      const { answer, key } = await claim(client, progress, number);
      return answer ?? { ...(await storeChecked(client, organisationId, type, checked, references)), key };
    };
    // Sent together. If the first statement fails, the others fail too, and the first error is the cause.
    const [, stored] = await Promise.all([enterBatch(client, attempt, organisationId, type), store()]);
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
    : storeRows({ client, organisationId, type }, checked, references.suppressions);
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
  { organisationId, requestId, type, keyId, bodyBytes, batchCount }: Progress,
  idempotencyKey: string | null,
): ReceiptHead {
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
