import type { ArrayType } from '../postgres/binary/array-writer.ts';
import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { exactTime } from '../postgres/iso-time.ts';
import type { Client } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';
import { quote, sentRows } from '../records/tables.ts';
import type { ColumnType } from '../registry/fields.ts';
import { perType } from '../registry/resources.ts';
import { sentColumnTypes, sentFields, type UploadType } from '../registry/upload-types.ts';

export interface NewRejections {
  readonly count: number;
  readonly rejectionIds: Buffer;
  readonly kindIds: Buffer;
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
 * There is one rejection per record. If another upload with the same failed record commits first, fewer rows are
 * written than were sent, and the transaction is retried. Inserting in record id order avoids a deadlock.
 */
const unlessThere = 'order by i.record_id on conflict do nothing';

const keepFailedText = `
  insert into rejections (${columns})
  select i.organisation_id, i.rejection_id, $8, i.kind_id, $9, i.index, i.record_id, i.updated, i.record
  from ${sentRows([...sentColumns, 'record', 'updated'], [...sentTypes, 'text', 'timestamptz'])}
  ${unlessThere}`;

/** `texts` contains the records' JSON, and `updated` contains their own `updated` values. */
export async function keepFailed(
  client: Client,
  organisationId: string,
  type: UploadType,
  requestId: string,
  { texts, updated }: { readonly texts: Buffer; readonly updated: Buffer },
  rejections: NewRejections,
): Promise<void> {
  const values = [organisationId, ...sentArrays(rejections), texts, updated, type, requestId];
  const statement = { name: 'keep failed records', text: keepFailedText, values };
  await queryRows(client, statement, rejections.count);
}

function writtenDown(value: string, column: ColumnType): string {
  if (column === 'timestamptz') return exactTime(value);
  return column === 'jsonb' ? `${value}::json` : value;
}

/** PostgreSQL builds each record's JSON from the arrays that would have been stored. */
const keepMissingStatement = perType((type: UploadType) => {
  const fields = Object.entries(sentFields(type));
  const isInteraction = type === 'interactions';
  const sent = [...fields.map(([name]) => quote(name)), ...(isInteraction ? ['event_time'] : [])];
  const types = [...sentColumnTypes(type), ...(isInteraction ? (['timestamptz'] as const) : [])];
  const after = sent.length + sentColumns.length + 1;
  const members = fields.map(([name, { column }]) => `'${name}', ${writtenDown(`i.${quote(name)}`, column)}`);
  return {
    name: `keep missing references of ${type}`,
    text: `
      insert into rejections (${columns})
      select i.organisation_id, i.rejection_id, $${after + 1}, i.kind_id, $${after + 2}, i.index, i.record_id,
        ${isInteraction ? 'null' : 'i.updated'},
        json_strip_nulls(json_build_object(${members.join(', ')}))::text
      from ${sentRows([...sentColumns, ...sent], [...sentTypes, ...types])}
      ${unlessThere}`,
  };
});

export async function keepMissing(
  client: Client,
  organisationId: string,
  type: UploadType,
  requestId: string,
  { arrays }: EncodedRows,
  rejections: NewRejections,
): Promise<void> {
  const values = [organisationId, ...sentArrays(rejections), ...arrays, type, requestId];
  await queryRows(client, { ...keepMissingStatement(type), values }, rejections.count);
}
