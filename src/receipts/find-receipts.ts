import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type AskedPage, newestFirst } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import {
  dateTime,
  type Field,
  isUuid,
  oneOf,
  optional,
  perPage,
  type Scalar,
  text,
  uuid,
} from '../registry/fields.ts';
import { uploadTypes } from '../registry/upload-types.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { inOneSnapshot } from '../suppression/hidden-ids.ts';
import { formsOf, formsToShow } from '../suppression/idempotency-keys.ts';
import type { BatchAnswer, Counts } from './batch-answer.ts';
import { answerOf, findReceipt, receiptTable, type StoredReceipt } from './receipts.ts';

interface ReceiptSummary extends Omit<StoredReceipt, keyof Counts | 'batches'> {
  readonly received: string;
  readonly complete: boolean;
  /** The batches that were rolled back, never started, or are still pending. */
  readonly missing_batches: readonly number[];
  readonly counts: Counts;
}

export interface Receipt extends ReceiptSummary {
  readonly batches: readonly BatchAnswer[];
}

function summaryOf(stored: StoredReceipt, shown: (key: string) => string): ReceiptSummary {
  const there = new Set(stored.batches);
  const missing = Array.from({ length: stored.batch_count }, (_, at) => at + 1).filter(
    (at) => !there.has(at),
  );
  const { received, created, updated, unchanged, stale, failed } = stored;
  return {
    request_id: stored.request_id,
    operation: stored.operation,
    type: stored.type,
    mode: stored.mode,
    run_id: stored.run_id,
    file: stored.file,
    first_record: stored.first_record,
    status: stored.status,
    received: timeOfUuidV7(stored.request_id),
    key_id: stored.key_id,
    idempotency_key: stored.idempotency_key === null ? null : shown(stored.idempotency_key),
    body_bytes: stored.body_bytes,
    duration_ms: stored.duration_ms,
    batch_count: stored.batch_count,
    complete: missing.length === 0,
    missing_batches: missing,
    counts: { received, created, updated, unchanged, stale, failed },
  };
}

/** A large replay's responses can add up to 35 MB. Only batches that were on the receipt at first are included. */
export async function* receiptFor(
  pool: Pool,
  organisationId: string,
  requestId: string,
): AsyncGenerator<Buffer> {
  if (!isUuid(requestId)) throw new RequestError('receipt_not_found');
  const { stored, shown } = await inOneSnapshot(pool, async (client) => {
    const found = await findReceipt(client, organisationId, requestId);
    if (!found) throw new RequestError('receipt_not_found');
    return { stored: found, shown: await formsToShow(client, organisationId, keysOf([found])) };
  });
  let next = `${JSON.stringify(summaryOf(stored, shown)).slice(0, -1)},"batches":[`;
  for (const [at, batch] of stored.batches.toSorted((a, b) => a - b).entries()) {
    const found = await inOneSnapshot(pool, (client) => answerOf(client, organisationId, requestId, batch));
    // The receipt's weekly partition has just been dropped.
    if (!found) throw new RequestError('receipt_not_found');
    yield Buffer.from(`${next}${at > 0 ? ',' : ''}${found.answer}`);
    next = '';
  }
  yield Buffer.from(']}');
}

export const receiptFilters: Readonly<Record<string, Field>> = {
  type: optional(oneOf(uploadTypes)),
  status: optional(oneOf(['200', '207', '400'], { description: 'only receipts with this status' })),
  idempotency_key: optional(text({ codePointsMax: limits.idempotencyKeyCharactersMax })),
  run_id: optional(uuid({ description: 'only receipts of this run' })),
  from: optional(dateTime({ description: 'only what was received at this time or later' })),
  to: optional(dateTime({ description: 'only what was received before this time' })),
  cursor: optional(uuid({ description: 'the `next_cursor` of the previous page' })),
  limit: optional(perPage('receipts', limits.receiptsPerPageMax, limits.receiptsPerPageDefault)),
};

export interface ReceiptPage {
  readonly requests: readonly ReceiptSummary[];
  readonly next_cursor: string | null;
}

export async function receiptPage(
  pool: Pool,
  organisationId: string,
  query: Readonly<Record<string, Scalar>>,
): Promise<ReceiptPage> {
  const { from, to, cursor, limit = limits.receiptsPerPageDefault, idempotency_key: key, ...rest } = query;
  const asked = { from, to, cursor, limit } as AskedPage;
  const filter = { ...rest, idempotency_key: typeof key === 'string' ? formsOf(key) : undefined };
  const { rows, next, shown } = await inOneSnapshot(pool, async (client) => {
    const page = await newestFirst<StoredReceipt>(client, receiptTable, organisationId, filter, asked);
    return { ...page, shown: await formsToShow(client, organisationId, keysOf(page.rows)) };
  });
  return { requests: rows.map((row) => summaryOf(row, shown)), next_cursor: next };
}

function keysOf(receipts: readonly StoredReceipt[]): string[] {
  return receipts.flatMap(({ idempotency_key }) => idempotency_key ?? []);
}
