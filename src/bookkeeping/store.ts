// bookkeeping/: the changes, counts and receipts that every writing transaction adds.

import { randomUUIDv7 } from 'node:crypto';
import { insertsInParts, type Statement, type Write } from '../postgres/pipelined-insert.ts';
import type { Client } from '../postgres/pool.ts';
import { beginAgainUnless, inTransaction, queryRows, retryConflicts } from '../postgres/transactions.ts';
import type { Mode } from '../registry/fields.ts';

export interface ChangedIds {
  readonly count: number;
  readonly ids: Buffer;
}

type KindChanges = ReadonlyMap<string, number>;

export const noRejections: KindChanges = new Map();

export interface Stored {
  readonly type: string;
  readonly changed: ChangedIds;
  readonly records: number;
  readonly newestUpdated: string | null;
  /** False for data that no client sent, such as an erasure. */
  readonly isReceived: boolean;
}

/** No field is optional, so that no writer can forget one. */
export interface Done {
  readonly organisationId: string;
  /** Null if rejections were discarded, for example. */
  readonly stored: Stored | null;
  readonly rejected: KindChanges;
  readonly receipt: { readonly head: ReceiptHead; readonly added: ReceiptAddition } | null;
}

export interface Work<T> {
  readonly result: T;
  readonly done: readonly Done[];
  readonly writes?: readonly Write[];
  /** Called when the statements are sent. If it returns false, the transaction restarts. */
  readonly isStillTrue?: () => boolean;
}

/**
 * All data must be stored through this function, because it adds the entries in the change log, the counts and the
 * receipt. If a statement writes an unexpected number of rows, the transaction restarts (see `queryRows`).
 */
export function storeInTransaction<T>(
  pool: { connect(): Promise<Client> },
  work: (client: Client, attempt: number) => Promise<Work<T>>,
): Promise<T> {
  return retryConflicts((attempt) =>
    inTransaction(pool, async (client, sendLast) => {
      const { result, done, writes = [], isStillTrue } = await work(client, attempt);
      if (isStillTrue)
        sendLast(async () =>
          beginAgainUnless(isStillTrue(), 'the version that the writes were checked against is too old'),
        );
      for (const { statement, rows } of [...writes, ...entriesOf(done)])
        sendLast((last) => queryRows(last, statement, rows));
      return result;
    }),
  );
}

const countColumns = ['organisation_id', 'type', 'records', 'newest_updated', 'last_upload'];
const changeColumns = ['organisation_id', 'change_id', 'type', 'size', 'ids'];

/** Organisations share statements, because a cluster replans every statement. */
function entriesOf(all: readonly Done[]): Write[] {
  const now = new Date();
  const stored = all.flatMap(({ organisationId, stored: one }) => (one ? { organisationId, ...one } : []));
  return [
    ...insertsInParts(
      'record_count_changes',
      countColumns,
      stored.map(({ organisationId, type, records, newestUpdated, isReceived }) => [
        organisationId,
        type,
        records,
        newestUpdated,
        isReceived ? now : null,
      ]),
    ),
    ...insertsInParts(
      'changes',
      changeColumns,
      stored
        .filter(({ changed }) => changed.count > 0)
        .map(({ organisationId, type, changed }) => [
          organisationId,
          randomUUIDv7(),
          type,
          changed.count,
          changed.ids,
        ]),
    ),
    ...all.flatMap(({ organisationId, rejected }) => kindEntry(organisationId, rejected)),
    ...all.flatMap(({ receipt }) => (receipt ? receiptEntry(receipt.head, receipt.added) : [])),
  ];
}

function kindEntry(organisationId: string, rejected: KindChanges): Write[] {
  const changed = [...rejected].filter(([, rejections]) => rejections !== 0);
  if (changed.length === 0) return [];
  const statement = {
    name: 'add rejection count changes',
    text: `
      insert into rejection_count_changes (organisation_id, kind_id, rejections)
      select o.organisation_id, c.kind_id, c.rejections
      from tenants o cross join unnest($2::uuid[], $3::bigint[]) as c(kind_id, rejections)
      where o.organisation_id = $1`,
    values: [organisationId, changed.map(([kindId]) => kindId), changed.map(([, rejections]) => rejections)],
  };
  return [{ statement, rows: changed.length }];
}

/**
 * Stores new rows with their entries in one statement. `storing` is a list of `with` queries, and the one named
 * `stored` must return the rows' ids as `id`. Rows that another transaction stored first are missing from it and get no
 * entries, so nothing has to be undone. A cluster would gather the rows on one node, so this is for a single server.
 */
export function storingStatement(
  name: string,
  type: string,
  storing: string,
  parameters: number,
): (values: readonly unknown[]) => Statement {
  const [now, changeId] = [`$${parameters + 1}::timestamptz`, `$${parameters + 2}::uuid`];
  const text = `
    with ${storing},
    counted as (
      insert into record_count_changes (${countColumns.join(', ')})
      select $1, '${type}', count(*), null, ${now} from stored having count(*) > 0),
    logged as (
      insert into changes (${changeColumns.join(', ')})
      select $1, ${changeId}, '${type}', count(*), array_agg(id) from stored having count(*) > 0)
    select id from stored`;
  return (values) => ({ name, text, values: [...values, new Date(), randomUUIDv7()] });
}

export interface ReceiptHead {
  readonly organisationId: string;
  readonly requestId: string;
  readonly operation: 'upload' | 'replay';
  readonly type: string | null;
  /** Null for interactions and replays. */
  readonly mode: Mode | null;
  /** Null if the request named no run. */
  readonly run: { readonly runId: string; readonly file: number; readonly firstRecord: number | null } | null;
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
    batch_count, mode, run_id, file, first_record, status, duration_ms, batches, ${counted.join(', ')})
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, array[$15::integer], $16, $17, $18, $19, $20, $21)
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
    head.mode,
    head.run?.runId ?? null,
    head.run?.file ?? null,
    head.run?.firstRecord ?? null,
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
