import { counted } from '../bookkeeping/store.ts';
import type { TimePartitions } from '../jobs/time-partitions.ts';
import type { TimedTable } from '../postgres/keyset-page.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { answerWithout, openIdsAmong } from '../suppression/hidden-ids.ts';
import { uuidsIn } from '../suppression/ids-in-text.ts';
import type { Counts } from './batch-answer.ts';

export interface StoredReceipt extends Counts {
  readonly request_id: string;
  readonly operation: 'upload' | 'replay';
  readonly type: string | null;
  /** Null for interactions, replays and uploads to earlier versions. */
  readonly mode: string | null;
  /** Null if the request named no run. */
  readonly run_id: string | null;
  /** The index of the file in the run. */
  readonly file: number | null;
  readonly first_record: number | null;
  readonly status: number;
  readonly key_id: string;
  readonly idempotency_key: string | null;
  readonly body_bytes: number;
  readonly duration_ms: number;
  readonly batch_count: number;
  readonly batches: readonly number[];
}

const columns = `request_id, operation, type, mode, run_id, file, first_record::float8 as first_record, status, key_id, idempotency_key, body_bytes, duration_ms, batch_count,
  batches, ${counted.join(', ')}`;

/** Without the ids of people who are being erased. */
export async function answerOf(
  client: Client,
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
  const [found] = rows;
  if (!found) return undefined;
  const hidden = await openIdsAmong(client, organisationId, uuidsIn(found.answer));
  return hidden.size > 0 ? { ...found, answer: answerWithout(hidden, found.answer) } : found;
}

export async function findReceipt(
  pool: Pick<Pool, 'query'>,
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

export const receiptPartitions: TimePartitions = {
  tables: ['receipts', 'receipt_batches'],
  detach: 'detach_weekly_partition',
  drop: 'drop_detached_partition',
};
