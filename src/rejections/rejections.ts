import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import { exactTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { beginAgainUnless, queryRows } from '../postgres/transactions.ts';
import { withinBytes } from '../records/within-bytes.ts';
import type { Mode } from '../registry/fields.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { inOneSnapshot, openIdsIn } from '../suppression/hidden-ids.ts';
import { idsInFailed } from '../suppression/ids-in-text.ts';
import { countChange, type KindFilter, listKinds, type Reasons } from './rejection-kinds.ts';

/**
 * The statements in this file are not prepared. PostgreSQL would cache their plans, and a plan made while there were no
 * rejections would read all of them once there are a million.
 */

export interface RejectionFilter extends KindFilter {
  /** Only rejections of these requests. */
  readonly requestIds?: readonly string[];
}

export interface StoredRejection extends Reasons {
  readonly rejection_id: string;
  readonly type: UploadType;
  readonly kind_id: string;
  readonly request_id: string;
  readonly index: number;
  readonly record_id: string | null;
  readonly mode: Mode;
  readonly record: string | null;
}

export interface RejectionRange {
  readonly after: string | undefined;
  readonly limit: number;
}

/**
 * Uses the most suitable index: by requests, by kind if the filter contains errors, by type, or by id. `kindIds` are the
 * matching kinds, and undefined means all kinds. Equality is written as a range and an order, so that PostgreSQL cannot
 * choose another index. With `=`, it may scan by id instead, and read a million rows for a type without rejections.
 */
export async function listIds(
  pool: Pool,
  organisationId: string,
  { type, requestIds }: Pick<RejectionFilter, 'type' | 'requestIds'>,
  kindIds: readonly string[] | undefined,
  { after, limit }: RejectionRange,
): Promise<string[]> {
  const values: unknown[] = [organisationId, after ?? firstUuid];
  // The limit is a literal, as in `listApiKeys`.
  const most = `limit ${Math.trunc(limit)}`;
  const add = (value: unknown) => `$${values.push(value)}`;
  const next = (column: string, value: string, more = '') => `(
    select rejection_id from rejections
    where organisation_id = $1 and (${column}, rejection_id) > (${value}, $2) and ${column} <= ${value} ${more}
    order by ${column}, rejection_id ${most}) as next`;
  let from: string;
  if (requestIds !== undefined) {
    // A kind belongs to one type, so the type need not be checked separately. `is true` stops PostgreSQL from using the
    // index on kind or type.
    let more = '';
    if (kindIds !== undefined) more = `and (kind_id = any(${add(kindIds)}::uuid[])) is true`;
    else if (type !== undefined) more = `and (type = ${add(type)}) is true`;
    from = `unnest(${add(requestIds)}::uuid[]) as q(id) cross join lateral ${next('request_id', 'q.id', more)}`;
  } else if (kindIds !== undefined)
    from = `unnest(${add(kindIds)}::uuid[]) as k(id) cross join lateral ${next('kind_id', 'k.id')}`;
  else if (type !== undefined) from = next('type', `${add(type)}::text`);
  else from = 'rejections where organisation_id = $1 and rejection_id > $2';
  // One text, because reading a thousand rows took a sixth of the time that a page occupies the event loop.
  const text = `
    select array_agg(rejection_id)::text as ids
    from (select rejection_id from ${from} order by rejection_id ${most}) as listed`;
  const { rows } = await withoutSorting(pool, (client) => client.query<{ ids: string | null }>(text, values));
  return rows[0]?.ids?.slice(1, -1).split(',') ?? [];
}

/** Returns undefined if all kinds match. */
async function kindIdsOf(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
): Promise<string[] | undefined> {
  if (filter.code === undefined && filter.field === undefined) return undefined;
  const kinds = await listKinds(pool, organisationId, filter);
  return kinds.map(({ kind_id }) => kind_id);
}

/** Returns rejections in id order, until their records exceed `bytesMax`. */
export async function readRejections(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  ids: readonly string[],
  bytesMax: number,
): Promise<StoredRejection[]> {
  const { rows } = await pool.query<Omit<StoredRejection, keyof Reasons>>({
    text: `
      select rejection_id, type, kind_id, request_id, index, record_id, mode, record
      from ${withinBytes({
        rows: 'select * from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])',
        order: 'rejection_id',
        bytesMax: '$3',
      })} as next
      order by rejection_id`,
    values: [organisationId, ids, bytesMax],
  });
  if (rows.length === 0) return [];
  const reasons = await reasonsOf(pool, organisationId, new Set(rows.map(({ kind_id }) => kind_id)));
  // A kind without rejections is removed some time later, so a rejection without a kind was removed after it was read.
  return rows.flatMap((row) => {
    const found = reasons.get(row.kind_id);
    return found ? [{ ...row, ...found }] : [];
  });
}

/**
 * Read once per kind, in a statement of its own. Joined to the rejections, the reasons took more than half of
 * PostgreSQL's time for a page, even when only the first rejection of each kind came with them.
 */
async function reasonsOf(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  kindIds: ReadonlySet<string>,
): Promise<Map<string, Reasons>> {
  const { rows } = await pool.query<Reasons & { kind_id: string }>({
    text: 'select kind_id, fields, codes, messages from rejection_kinds where organisation_id = $1 and kind_id = any($2::uuid[])',
    values: [organisationId, [...kindIds]],
  });
  return new Map(rows.map(({ kind_id, ...reasons }) => [kind_id, reasons]));
}

type Example = Pick<StoredRejection, 'rejection_id' | 'request_id' | 'index' | 'record_id'>;

export async function readExamples(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  ids: readonly string[],
): Promise<Example[]> {
  const { rows } = await pool.query<Example>(
    `select rejection_id, request_id, index, record_id from rejections
     where organisation_id = $1 and rejection_id = any($2::uuid[])`,
    [organisationId, ids],
  );
  return rows;
}

/** The page is cut short if the records exceed `bytesMax`. `hidden` are the ids in them that nobody may read. */
export async function pageOfRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
  { after, limit }: RejectionRange,
  bytesMax: number,
): Promise<{
  readonly rejections: readonly StoredRejection[];
  readonly hidden: ReadonlySet<string>;
  readonly more: boolean;
}> {
  const kindIds = await kindIdsOf(pool, organisationId, filter);
  const ids = await listIds(pool, organisationId, filter, kindIds, { after, limit: limit + 1 });
  return inOneSnapshot(pool, async (client) => {
    const rejections = await readRejections(client, organisationId, ids.slice(0, limit), bytesMax);
    const hidden = await openIdsIn(client, organisationId, rejections, idsInFailed);
    return { rejections, hidden, more: rejections.length < ids.length };
  });
}

export async function countByKind(
  pool: Pool,
  organisationId: string,
  requestIds: readonly string[],
): Promise<Map<string, { readonly count: number; readonly first: string; readonly last: string }>> {
  const { rows } = await pool.query<{ kind_id: string; count: number; first: string; last: string }>({
    // `offset 0` forces one index lookup per request. With `any`, all rejections of an organisation that had grown were read.
    text: `
      select kind_id, count(*)::integer as count, min(rejection_id::text) as first, max(rejection_id::text) as last
      from unnest($2::uuid[]) as q(id) cross join lateral (
        select kind_id, rejection_id from rejections
        where organisation_id = $1 and request_id = q.id offset 0) as found
      group by kind_id`,
    values: [organisationId, requestIds],
  });
  return new Map(rows.map(({ kind_id, ...counted }) => [kind_id, counted]));
}

export async function endsOfKinds(
  pool: Pool,
  organisationId: string,
  kindIds: readonly string[],
): Promise<Map<string, { readonly first: string; readonly last: string }>> {
  const end = (direction: 'asc' | 'desc') =>
    `(select rejection_id from rejections where organisation_id = $1 and kind_id = k.id
        order by rejection_id ${direction} limit 1)`;
  const { rows } = await pool.query<{ kind_id: string; first: string | null; last: string | null }>({
    text: `select k.id as kind_id, ${end('asc')} as first, ${end('desc')} as last from unnest($2::uuid[]) as k(id)`,
    values: [organisationId, kindIds],
  });
  return new Map(
    rows.flatMap(({ kind_id, first, last }) => (first && last ? [[kind_id, { first, last }] as const] : [])),
  );
}

/** An earlier rejection of a record that was sent again. */
export interface EarlierRejection {
  readonly rejection_id: string;
  readonly record_id: string;
  /** Whether the new record replaces the rejected one. False if the rejected version is newer. */
  readonly is_settled: boolean;
}

/**
 * Rejections are locked in id order and after the records, to avoid deadlocks. They are first found, then locked by id,
 * and compared when they can no longer change. With a single statement, PostgreSQL joined all ids with all rejections
 * of an organisation that had grown since the last analyze, and 1,000 records took longer than the statement timeout.
 */
export async function lockFound(
  client: Client,
  organisationId: string,
  find: () => Promise<readonly EarlierRejection[]>,
): Promise<EarlierRejection[]> {
  const found = await find();
  if (found.length === 0) return [];
  const ids = found.map(({ rejection_id }) => rejection_id);
  const locked = await lockRejections(client, organisationId, [...new Set(ids)]);
  return mergeById((await find()).filter(({ rejection_id }) => locked.has(rejection_id)));
}

/** A record that was sent several times finds its rejection several times. One that settles it is enough. */
function mergeById(found: readonly EarlierRejection[]): EarlierRejection[] {
  const byId = new Map<string, EarlierRejection>();
  for (const rejection of found)
    if (!byId.get(rejection.rejection_id)?.is_settled) byId.set(rejection.rejection_id, rejection);
  return [...byId.values()];
}

/** Adds the change in the count of each kind to `changes`. */
export async function deleteSettled(
  client: Client,
  organisationId: string,
  locked: readonly EarlierRejection[],
  changes: Map<string, number>,
): Promise<void> {
  const settled = locked.filter(({ is_settled }) => is_settled).map(({ rejection_id }) => rejection_id);
  if (settled.length === 0) return;
  const gone = await deleteLocked(client, organisationId, settled);
  for (const kindId of gone.values()) countChange(changes, kindId, -1);
}

/** `sent` contains the records' ids and, in a second array, their `updated` values. */
export async function findRejectionsOf(
  client: Client,
  organisationId: string,
  type: UploadType,
  sent: EncodedRows,
): Promise<EarlierRejection[]> {
  const { rows } = await client.query<EarlierRejection>({
    // `offset 0` forces one index lookup per id. In a join, all of the type's rejections were compared with all ids.
    text: `
      select x.rejection_id, s.id as record_id, (x.updated > s.updated) is not true as is_settled
      from unnest($3::uuid[], $4::timestamptz[]) as s(id, updated)
      cross join lateral (
        select rejection_id, updated from rejections
        where organisation_id = $1 and type = $2 and record_id = s.id offset 0) as x`,
    values: [organisationId, type, ...sent.arrays],
  });
  return rows;
}

export interface KeptRecord {
  readonly rejection_id: string;
  readonly kind_id: string;
  readonly request_id: string;
  readonly index: number;
  readonly record_id: string;
  readonly updated: string | null;
  readonly mode: Mode;
  readonly record: string | null;
}

export async function readKept(
  client: Client,
  organisationId: string,
  rejections: readonly Pick<EarlierRejection, 'rejection_id'>[],
): Promise<Map<string, KeptRecord>> {
  if (rejections.length === 0) return new Map();
  const { rows } = await client.query<KeptRecord>({
    text: `
      select rejection_id, kind_id, request_id, index, record_id, ${exactTime('updated')} as updated, mode, record
      from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])`,
    values: [organisationId, rejections.map(({ rejection_id }) => rejection_id)],
  });
  return new Map(rows.map((row) => [row.rejection_id, row]));
}

/** Skips rejections that no longer exist. */
export async function kindsOfRejections(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await client.query<{ rejection_id: string; kind_id: string }>({
    text: 'select rejection_id, kind_id from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])',
    values: [organisationId, ids],
  });
  return new Map(rows.map(({ rejection_id, kind_id }) => [rejection_id, kind_id]));
}

export async function lockRejections(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<Set<string>> {
  const { rows } = await client.query<{ rejection_id: string }>({
    text: `
      select rejection_id from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])
      order by rejection_id for update`,
    values: [organisationId, ids],
  });
  return new Set(rows.map(({ rejection_id }) => rejection_id));
}

export async function deleteLocked(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const gone = await deleteRejections(client, organisationId, ids);
  beginAgainUnless(gone.size === ids.length, 'a rejection was not removed');
  return gone;
}

/**
 * Returns the rejections that existed, each with its kind. They are locked in id order. The subquery is wrapped in an
 * array, so that it is executed once. With `in`, PostgreSQL would execute the subquery for each row if it expects a
 * single row, as it does for an organisation that has grown since the last analyze. Deleting 10,000 rejections would
 * then take minutes instead of 50 ms.
 */
export async function deleteRejections(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await client.query<{ rejection_id: string; kind_id: string }>({
    text: `
      delete from rejections where organisation_id = $1 and rejection_id = any(array(
        select rejection_id from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])
        order by rejection_id for update))
      returning rejection_id, kind_id`,
    values: [organisationId, ids],
  });
  return new Map(rows.map(({ rejection_id, kind_id }) => [rejection_id, kind_id]));
}

export async function changeKinds(
  client: Client,
  organisationId: string,
  rejectionIds: readonly string[],
  kindIds: readonly string[],
): Promise<void> {
  const statement = {
    text: `
      update rejections t set kind_id = i.kind_id
      from unnest($2::uuid[], $3::uuid[]) as i(rejection_id, kind_id)
      where t.organisation_id = $1 and t.rejection_id = i.rejection_id`,
    values: [organisationId, rejectionIds, kindIds],
  };
  await queryRows(client, statement, rejectionIds.length);
}

export async function typesRejected(
  pool: Pool,
  organisationId: string,
  types: readonly UploadType[],
): Promise<UploadType[]> {
  const { rows } = await pool.query<{ type: UploadType }>({
    text: `
      select t.type from unnest($2::text[]) with ordinality as t(type, position)
      where exists (select from rejections where organisation_id = $1 and type = t.type)
      order by t.position`,
    values: [organisationId, types],
  });
  return rows.map(({ type }) => type);
}
