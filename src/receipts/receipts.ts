import type { TimedTable } from '../postgres/newest-first.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { expectRows } from '../postgres/transactions.ts';
import type { Counts } from './batch-answer.ts';

/** What a receipt says of its request as a whole. */
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
  readonly counts: Counts;
  /** The answer for the batch, as JSON. */
  readonly answer: string;
}

const counted = ['received', 'created', 'updated', 'unchanged', 'stale', 'failed'] as const;

/** The statements that add a batch to its receipt, run in the batch's own transaction. */
export function addToReceipt(
  head: ReceiptHead,
  added: ReceiptAddition,
): ((client: Client) => Promise<unknown>)[] {
  const { organisationId, requestId } = head;
  return [
    async (client) => {
      const written = await client.query({
        name: 'add to receipt',
        text: `
          insert into receipts as r (organisation_id, request_id, operation, type, key_id, idempotency_key, body_bytes,
            batch_count, status, duration_ms, batches, ${counted.join(', ')})
          values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, array[$11::integer], $12, $13, $14, $15, $16, $17)
          on conflict (organisation_id, request_id) do update
            set type = case when r.type = excluded.type then r.type end,
              status = case when r.status = excluded.status then r.status else 207 end,
              duration_ms = excluded.duration_ms, batch_count = excluded.batch_count,
              batches = r.batches || excluded.batches,
              ${counted.map((count) => `${count} = r.${count} + excluded.${count}`).join(', ')}`,
        values: [
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
        ],
      });
      expectRows(written, 1, 'a receipt');
    },
    async (client) => {
      const written = await client.query({
        name: 'add answer to receipt',
        text: 'insert into receipt_batches (organisation_id, request_id, batch, answer) values ($1, $2, $3, $4)',
        values: [organisationId, requestId, added.batch, added.answer],
      });
      expectRows(written, 1, 'an answer');
    },
  ];
}

export interface StoredReceipt extends Counts {
  readonly request_id: string;
  readonly operation: 'upload' | 'replay';
  readonly type: string | null;
  readonly status: number;
  readonly key_id: string;
  readonly idempotency_key: string | null;
  readonly body_bytes: number;
  readonly duration_ms: number;
  readonly batch_count: number;
  /** The numbers of the stored batches. */
  readonly batches: readonly number[];
}

const columns = `request_id, operation, type, status, key_id, idempotency_key, body_bytes, duration_ms, batch_count,
  batches, ${counted.join(', ')}`;

/** The answer for one batch of a request, as JSON, if it is stored. */
export async function answerOf(
  client: Client | Pool,
  organisationId: string,
  requestId: string,
  batch: number,
): Promise<{ readonly status: number; readonly answer: string } | undefined> {
  const { rows } = await client.query<{ status: number; answer: string }>({
    name: 'answer of a batch',
    text: `select (answer::json ->> 'status')::integer as status, answer from receipt_batches
           where organisation_id = $1 and request_id = $2 and batch = $3`,
    values: [organisationId, requestId, batch],
  });
  return rows[0];
}

export async function findReceipt(
  pool: Pool,
  organisationId: string,
  requestId: string,
): Promise<StoredReceipt | undefined> {
  const { rows } = await pool.query<StoredReceipt>({
    name: 'find receipt',
    text: `select ${columns} from receipts where organisation_id = $1 and request_id = $2`,
    values: [organisationId, requestId],
  });
  return rows[0];
}

export const receiptTable: TimedTable = { name: 'receipts', id: 'request_id', columns };
