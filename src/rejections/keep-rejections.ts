import type { ArrayType } from '../postgres/binary/array-writer.ts';
import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { exactTime } from '../postgres/iso-time.ts';
import type { Client } from '../postgres/pool.ts';
import { expectRows } from '../postgres/transactions.ts';
import { perType, sentRows, tableOf } from '../records/tables.ts';
import type { ResourceType } from '../registry/resources.ts';

/** New rejections, an array per column. */
export interface NewRejections {
  readonly count: number;
  readonly rejectionIds: Buffer;
  readonly kindIds: Buffer;
  /** Where each record stood in its request. */
  readonly indices: Buffer;
  readonly recordIds: Buffer;
}

const columns = 'organisation_id, rejection_id, type, kind_id, request_id, index, record_id, updated, record';
const sentColumns = ['rejection_id', 'kind_id', 'index', 'record_id'];
const sentTypes: readonly ArrayType[] = ['uuid', 'uuid', 'int4', 'uuid'];

function sentArrays({ rejectionIds, kindIds, indices, recordIds }: NewRejections): Buffer[] {
  return [rejectionIds, kindIds, indices, recordIds];
}

/**
 * Of a record there is one rejection. Another upload in which it failed too may be about to commit: then fewer rows are
 * written than were sent, and we begin again. Both write in the order of the records' ids, or they would deadlock.
 */
const unlessThere = 'order by i.record_id on conflict do nothing';

const keepFailedText = `
  insert into rejections (${columns})
  select i.organisation_id, i.rejection_id, $8, i.kind_id, $9, i.index, i.record_id, i.updated, i.record
  from ${sentRows([...sentColumns, 'record', 'updated'], [...sentTypes, 'text', 'timestamptz'])}
  ${unlessThere}`;

/** Keeps records that are bad in themselves: `texts` has their JSON, `updated` when they say that they were changed. */
export async function keepFailed(
  client: Client,
  organisationId: string,
  type: ResourceType,
  requestId: string,
  { texts, updated }: { readonly texts: Buffer; readonly updated: Buffer },
  rejections: NewRejections,
): Promise<void> {
  const written = await client.query({
    name: 'keep failed records',
    text: keepFailedText,
    values: [organisationId, ...sentArrays(rejections), texts, updated, type, requestId],
  });
  expectRows(written, rejections.count, 'rejections');
}

/** PostgreSQL writes the record down from the very arrays that would have been stored. */
const keepMissingStatement = perType((type) => {
  const { columns: fields, types } = tableOf(type);
  const after = fields.length + sentColumns.length + 1;
  const members = fields.map((field, at) => {
    const value = types[at] === 'timestamptz' ? exactTime(`i.${field}`) : `i.${field}`;
    return `'${field.slice(1, -1)}', ${value}`;
  });
  return {
    name: `keep missing references of ${type}`,
    text: `
      insert into rejections (${columns})
      select i.organisation_id, i.rejection_id, $${after + 1}, i.kind_id, $${after + 2}, i.index, i.record_id, i.updated,
        json_strip_nulls(json_build_object(${members.join(', ')}))::text
      from ${sentRows([...sentColumns, ...fields], [...sentTypes, ...types])}
      ${unlessThere}`,
  };
});

/** Keeps records that refer to something that does not exist. */
export async function keepMissing(
  client: Client,
  organisationId: string,
  type: ResourceType,
  requestId: string,
  { arrays }: EncodedRows,
  rejections: NewRejections,
): Promise<void> {
  const written = await client.query({
    ...keepMissingStatement(type),
    values: [organisationId, ...sentArrays(rejections), ...arrays, type, requestId],
  });
  expectRows(written, rejections.count, 'rejections');
}
