import { RequestError } from '../../errors.ts';
import { lacksPermission } from '../../keys/permissions.ts';
import type { CursorSigner } from '../../keys/signed-cursors.ts';
import { lakeState } from '../../lake/lake-progress.ts';
import type { LakeReader, LakeTableType, Listing, TableFile } from '../../lake/lake-reader.ts';
import { lakeLimits } from '../../lake/limits.ts';
import { lakeSchema, lakeTypes } from '../../lake/table/lake-schema.ts';
import { pageOf } from '../../postgres/keyset-page.ts';
import { oneOf, optional, perPage, text, uuid } from '../../registry/fields.ts';
import { described, onePage, refused } from '../operation/described-answers.ts';
import { type Call, type Operation, ownOf, type Parts, principalOf } from '../operation/operation.ts';

const tag = 'Lake';
const permission = 'data:read';
const parquet = 'application/vnd.apache.parquet';
const binary = { mediaType: parquet, schema: { type: 'string', format: 'binary' } };

const typesByTable: ReadonlyMap<string, LakeTableType> = new Map(
  lakeTypes.map((type) => [lakeSchema(type).name, type]),
);
const table = oneOf([...typesByTable.keys()], { description: 'the name of a table' });

const notConfigured = {
  sharedAs: 'LakeNotConfigured',
  ...refused('The service has no lake. Code: `lake_not_configured`.'),
};
const off = { sharedAs: 'LakeOff', ...refused('The organisation has no lake. Code: `lake_off`.') };

const get: Operation = {
  id: 'get-lake',
  method: 'GET',
  path: '/v1/lake',
  tag,
  summary: 'Get the tables of the lake',
  description:
    'Returns each table with its newest version. `following`: everything stored before `as_of` is in it; `copying`: data ' +
    'from the database is still being copied, and the tables are incomplete; `off`: the organisation has no lake, and ' +
    '`notice` says what to do. `intake pull` copies the tables to a folder, where DuckDB, pandas and Polars read them.',
  permission,
  answers: { 200: described('The tables.', 'Lake'), 501: notConfigured },
  async handle(call, parts) {
    const lake = lakeOf(parts);
    const [pool, organisationId] = ownOf(call, parts);
    const { state, asOf, versions } = await lakeState(pool, organisationId);
    const tables: object[] = [];
    for (const type of lakeTypes) {
      const listing = state === 'off' ? undefined : await lake.listing(organisationId, type, versions[type]);
      tables.push({
        table: lakeSchema(type).name,
        state,
        version: listing?.version ?? null,
        rows: listing?.rows ?? 0,
        bytes: listing?.bytes ?? 0,
        files: listing?.files.length ?? 0,
        as_of: asOf,
      });
    }
    const { code, message } = new RequestError('lake_off');
    return { status: 200, body: { tables, notice: state === 'off' ? { code, message } : null } };
  },
};

const list: Operation = {
  id: 'list-lake-files',
  method: 'GET',
  path: '/v1/lake/{table}/files',
  tag,
  summary: 'List the files of a table',
  description:
    'Returns the files of the newest version in the order of their ids, and what a Delta Lake log needs to describe ' +
    'them. All pages are from one version: if the table changes in the meantime, the next page gets 410, and you have to ' +
    'start again. The table `interactions` also needs the permission `interactions:read`.',
  permission,
  pathParameters: { table },
  query: {
    cursor: optional(text({ description: 'the `next_cursor` of the previous page', codePointsMax: 100 })),
    limit: optional(perPage('files', lakeLimits.filesPerPageMax, lakeLimits.filesPerPageDefault)),
  },
  answers: {
    200: onePage('LakeFilePage'),
    404: refused('There is no such table. Code: `lake_table_not_found`.'),
    409: off,
    410: refused(
      'The table has changed since the first page, or the organisation was deleted. Codes: `lake_version_gone`, `organisation_deleted`.',
    ),
    501: notConfigured,
  },
  async handle(call, parts) {
    const { lake, organisationId, type, versions } = await tableOf(call, parts);
    const signer = await parts.cursors.for(organisationId, 'lake', type);
    const { cursor, limit = lakeLimits.filesPerPageDefault } = call.query;
    const from = cursor === undefined ? undefined : readCursor(String(cursor), signer);
    const listing = await lake.listing(organisationId, type, versions[type]);
    if (!listing) throw new RequestError('lake_table_not_found');
    if (from && from.version !== listing.version) throw new RequestError('lake_version_gone');
    return { status: 200, body: filePage(listing, type, from?.after, Number(limit), signer) };
  },
};

const download: Operation = {
  id: 'download-lake-file',
  method: 'GET',
  path: '/v1/lake/{table}/files/{file_id}',
  tag,
  summary: 'Download a file of a table',
  description:
    'Returns a Parquet file or one range of its bytes. A file never changes, and its ETag is its id, so an interrupted ' +
    'download can continue with `Range`. Files are merged and deleted: 404 means that the list of files has changed. The ' +
    'table `interactions` also needs the permission `interactions:read`.',
  permission,
  pathParameters: { table, file_id: uuid({ description: 'the `file_id` of a file' }) },
  requestHeaders: {
    Range: {
      type: 'string',
      pattern: '^bytes=([0-9]{1,15}-[0-9]{0,15}|-[0-9]{1,15})$',
      description: 'one range of bytes, such as `bytes=1000-`',
    },
    'If-Range': {
      type: 'string',
      maxLength: 100,
      description: 'the ETag; if the file has another, the whole file is returned',
    },
  },
  answers: {
    200: { description: 'The file, with `ETag` and `Accept-Ranges`.', ...binary },
    206: { description: 'The range, with `Content-Range`.', ...binary },
    404: refused(
      'There is no such file in the newest version. Codes: `lake_file_not_found`, `lake_table_not_found`.',
    ),
    409: off,
    416: refused('The header is not a single range of bytes within the file. Code: `range_not_satisfiable`.'),
    501: notConfigured,
  },
  async handle(call, parts) {
    const { lake, organisationId, type } = await tableOf(call, parts);
    const file = await lake.file(organisationId, type, call.params.file_id ?? '');
    if (!file) throw new RequestError('lake_file_not_found');
    const etag = `"${file.fileId}"`;
    const range = byteRange(call.headers, file.bytes, etag);
    const { from, to } = range ?? { from: 0, to: file.bytes };
    return {
      status: range ? 206 : 200,
      headers: {
        'content-type': parquet,
        'content-length': String(to - from),
        'accept-ranges': 'bytes',
        etag,
        ...(range && { 'content-range': `bytes ${from}-${to - 1}/${file.bytes}` }),
      },
      body: lake.read(organisationId, type, file, { from, to }),
    };
  },
};

const oneRange = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Several ranges in one request are refused, because the response could be larger than the file. As HTTP requires, units
 * other than bytes are ignored, and so is a range whose `If-Range` does not match the current ETag.
 */
export function byteRange(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  bytes: number,
  etag: string,
): { readonly from: number; readonly to: number } | undefined {
  const { range, 'if-range': ifRange = etag } = headers;
  if (typeof range !== 'string' || !range.startsWith('bytes=') || ifRange !== etag) return undefined;
  const [, first = '', last = ''] = oneRange.exec(range) ?? [];
  const asked =
    first === ''
      ? { from: Math.max(0, bytes - Number(last)), to: bytes }
      : { from: Number(first), to: last === '' ? bytes : Math.min(Number(last) + 1, bytes) };
  if (asked.from < asked.to) return asked;
  throw new RequestError('range_not_satisfiable', { headers: { 'content-range': `bytes */${bytes}` } });
}

function lakeOf({ lake }: Parts): LakeReader {
  if (!lake) throw new RequestError('lake_not_configured');
  return lake;
}

async function tableOf(call: Call, parts: Parts) {
  const { organisationId, permissions } = principalOf(call);
  const type = typesByTable.get(call.params.table ?? '');
  if (type === undefined) throw new RequestError('lake_table_not_found');
  if (type === 'interactions' && !permissions.includes('interactions:read'))
    throw lacksPermission('interactions:read');
  const lake = lakeOf(parts);
  const { state, versions } = await lakeState(...ownOf(call, parts));
  if (state === 'off') throw new RequestError('lake_off');
  return { lake, organisationId, type, versions };
}

function filePage(
  { version, metaData, files }: Listing,
  type: LakeTableType,
  after = '',
  limit: number,
  signer: CursorSigner,
): object {
  const { id, description, schemaString, partitionColumns } = metaData;
  const left = files.filter(({ fileId }) => fileId > after);
  const { rows, next } = pageOf(left, limit, ({ fileId }) => signer.write(`${version}.${fileId}`));
  return {
    table: lakeSchema(type).name,
    version,
    table_id: id,
    description,
    schema: schemaString,
    partition_columns: partitionColumns,
    files: rows.map((file) => shownFile(file, partitionColumns)),
    next_cursor: next,
  };
}

function shownFile(
  { fileId, partition, rows, bytes, sha256 }: TableFile,
  [column]: readonly string[],
): object {
  const inColumn = column !== undefined && partition !== undefined ? { [column]: partition } : {};
  return { file_id: fileId, partition: inColumn, rows, bytes, sha256 };
}

function readCursor(cursor: string, signer: CursorSigner) {
  const notACursor =
    'must be the `next_cursor` of the previous page of this table; leave it out for the first page';
  const [version, after = ''] = signer.read(cursor, notACursor).split('.');
  return { version: Number(version), after };
}

export const lakeOperations: readonly Operation[] = [get, list, download];
