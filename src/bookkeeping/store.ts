import { randomUUIDv7 } from 'node:crypto';
import { insertsInParts, type Statement, type Write } from '../postgres/pipelined-insert.ts';
import type { Client } from '../postgres/pool.ts';
import { beginAgainUnless, inTransaction, queryRows, retryConflicts } from '../postgres/transactions.ts';
import { type ReceiptAddition, type ReceiptHead, receiptEntry } from './receipt-entry.ts';

/** The ids of what was created or changed, as a binary array. */
export interface ChangedIds {
  readonly count: number;
  readonly ids: Buffer;
}

/** The change in the number of rejections of each kind. */
export type KindChanges = ReadonlyMap<string, number>;

export const noRejections: KindChanges = new Map();

/** What a transaction stored of one type. */
export interface Stored {
  readonly type: string;
  readonly changed: ChangedIds;
  /** How many of them are new. */
  readonly records: number;
  /** The newest `updated` among the stored records. */
  readonly newestUpdated: string | null;
  /** Whether a client sent it; what is erased is no upload. */
  readonly isReceived: boolean;
}

/** What a transaction did for an organisation. Nothing is optional, so that no writer can forget a part. */
export interface Done {
  readonly organisationId: string;
  /** Null if nothing was received that counts, such as when rejections are discarded. */
  readonly stored: Stored | null;
  readonly rejected: KindChanges;
  readonly receipt: { readonly head: ReceiptHead; readonly added: ReceiptAddition } | null;
}

export interface Work<T> {
  readonly result: T;
  readonly done: readonly Done[];
  /** Statements that are sent together with the entries. */
  readonly writes?: readonly Write[];
  /** Asked when the transaction has begun and they are sent; if it is false, all begins again. */
  readonly isStillTrue?: () => boolean;
}

/**
 * The only way to store anything: runs `work` in a transaction and enters what it did in the change log, the counts and
 * the receipt before it commits. A statement that writes another number of rows than it should begins the transaction
 * again; see `queryRows`.
 */
export function storeInTransaction<T>(
  pool: { connect(): Promise<Client> },
  work: (client: Client, attempt: number) => Promise<Work<T>>,
): Promise<T> {
  return retryConflicts((attempt) =>
    inTransaction(pool, async (client, sendLast) => {
      const { result, done, writes = [], isStillTrue } = await work(client, attempt);
      if (isStillTrue)
        sendLast(async () => beginAgainUnless(isStillTrue(), 'what the writes were checked with is too old'));
      for (const { statement, rows } of [...writes, ...entriesOf(done)])
        sendLast((last) => queryRows(last, statement, rows));
      return result;
    }),
  );
}

const countColumns = ['organisation_id', 'type', 'records', 'newest_updated', 'last_upload'];
const changeColumns = ['organisation_id', 'change_id', 'type', 'size', 'ids'];

/** Organisations share statements: in a cluster each statement is planned anew. */
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
 * Makes a statement for one PostgreSQL that stores new rows of a type and enters them. `storing` is a list of `with`
 * queries, of which `stored` returns the rows' ids as `id`; so does the statement. Only what was stored is entered: if
 * another transaction was first, the caller learns it from the ids, and nothing has to be undone. Not for a
 * cluster, which would gather the rows on one node.
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
