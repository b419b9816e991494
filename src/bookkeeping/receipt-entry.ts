// bookkeeping/: the changes, counts and receipts that every writing transaction adds.

import type { Write } from '../postgres/pipelined-insert.ts';

export interface ReceiptHead {
  readonly organisationId: string;
  readonly requestId: string;
  readonly operation: 'upload' | 'replay';
  readonly type: string | null;
  readonly keyId: string;
  readonly idempotencyKey: string | null;
  readonly bodyBytes: number;
  readonly batchCount: number;
}

export interface ReceiptAddition {
  readonly status: number;
  readonly durationMs: number;
  readonly batch: number;
  readonly counts: Readonly<Record<(typeof counted)[number], number>>;
  readonly answer: string;
}

/** Each is a column of `receipts`. */
export const counted = ['received', 'created', 'updated', 'unchanged', 'stale', 'failed'] as const;

const text = `
  insert into receipts as r (organisation_id, request_id, operation, type, key_id, idempotency_key, body_bytes,
    batch_count, status, duration_ms, batches, ${counted.join(', ')})
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, array[$11::integer], $12, $13, $14, $15, $16, $17)
  on conflict (organisation_id, request_id) do update
    set type = case when r.type = excluded.type then r.type end,
      status = case when r.status = excluded.status then r.status else 207 end,
      duration_ms = excluded.duration_ms, batch_count = excluded.batch_count,
      batches = r.batches || excluded.batches,
      ${counted.map((count) => `${count} = r.${count} + excluded.${count}`).join(', ')}`;

export function receiptEntry(head: ReceiptHead, added: ReceiptAddition): Write[] {
  const { organisationId, requestId } = head;
  const values = [
    organisationId,
    requestId,
    head.operation,
    head.type,
    head.keyId,
    head.idempotencyKey,
    head.bodyBytes,
    head.batchCount,
    added.status,
    added.durationMs,
    added.batch,
    ...counted.map((count) => added.counts[count]),
  ];
  const answer = {
    name: 'add answer to receipt',
    text: 'insert into receipt_batches (organisation_id, request_id, batch, answer) values ($1, $2, $3, $4)',
    values: [organisationId, requestId, added.batch, added.answer],
  };
  return [
    { statement: { name: 'add to receipt', text, values }, rows: 1 },
    { statement: answer, rows: 1 },
  ];
}
