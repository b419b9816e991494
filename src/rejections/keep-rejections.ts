import type { ArrayType } from '../postgres/binary/array-writer.ts';
import type { Client } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';
import { sentRows } from '../records/tables.ts';
import type { UploadType } from '../registry/upload-types.ts';

export interface NewRejections {
  readonly count: number;
  readonly rejectionIds: Buffer;
  readonly kindIds: Buffer;
  readonly requestIds: Buffer;
  readonly indices: Buffer;
  readonly recordIds: Buffer;
  /** The records' own `updated`. */
  readonly updated: Buffer;
  /** The records' JSON. Null if it is not kept. */
  readonly texts: Buffer;
  readonly modes: Buffer;
}

const columns =
  'organisation_id, rejection_id, type, kind_id, request_id, index, record_id, updated, record, mode';
const sent: readonly (readonly [string, ArrayType])[] = [
  ['rejection_id', 'uuid'],
  ['kind_id', 'uuid'],
  ['request_id', 'uuid'],
  ['index', 'int4'],
  ['record_id', 'uuid'],
  ['updated', 'timestamptz'],
  ['record', 'text'],
  ['mode', 'text'],
];
const typeAt = `$${sent.length + 2}`;

/**
 * There is one rejection per record. If another upload with the same failed record commits first, fewer rows are
 * written than were sent, and the transaction is retried. Inserting in record id order avoids a deadlock.
 */
const text = `
  insert into rejections (${columns})
  select i.organisation_id, i.rejection_id, ${typeAt}, i.kind_id, i.request_id, i.index, i.record_id, i.updated, i.record,
    i.mode
  from ${sentRows(
    sent.map(([name]) => name),
    sent.map(([, type]) => type),
  )}
  order by i.record_id on conflict do nothing`;

export async function keepRejections(
  client: Client,
  organisationId: string,
  type: UploadType,
  { count, rejectionIds, kindIds, requestIds, indices, recordIds, updated, texts, modes }: NewRejections,
): Promise<void> {
  const arrays = [rejectionIds, kindIds, requestIds, indices, recordIds, updated, texts, modes];
  const values = [organisationId, ...arrays, type];
  await queryRows(client, { name: 'keep failed records', text, values }, count);
}
