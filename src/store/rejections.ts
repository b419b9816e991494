import type { ResourceType } from '../registry/resources.ts';
import type { EncodedRows } from './encoded-rows.ts';
import { type Client, inTransaction, type Pool } from './pool.ts';
import { perType, sentRows, tableOf } from './tables.ts';

/** What is wrong with a record: for each bad field its name (empty for the record as a whole), code and message. */
export interface Reasons {
  readonly fields: readonly string[];
  readonly codes: readonly string[];
  readonly messages: readonly string[];
}

export interface NewRejection extends Reasons {
  readonly rejection_id: string;
  /** Where the record stood among those of its request. */
  readonly index: number;
  readonly record_id: string | null;
  /** JSON; null where it was too large to keep. */
  readonly record: string | null;
}

const reasonColumns = 'fields text[], codes text[], messages text[]';

/** Keeps records that were refused for what they are. */
export async function keepRefused(
  client: Client,
  organisationId: string,
  type: ResourceType,
  requestId: string,
  rejections: readonly NewRejection[],
): Promise<void> {
  await client.query({
    name: 'keep refused records',
    text: `
      insert into rejections (organisation_id, rejection_id, type, request_id, index, record_id, record, fields, codes, messages)
      select o.organisation_id, r.rejection_id, $2, $3, r.index, r.record_id, r.record, r.fields, r.codes, r.messages
      from organisations o
      cross join json_to_recordset($4::json)
        as r(rejection_id uuid, index integer, record_id uuid, record text, ${reasonColumns})
      where o.organisation_id = $1`,
    values: [organisationId, type, requestId, JSON.stringify(rejections)],
  });
}

export interface DanglingRecord extends Reasons {
  readonly rejection_id: string;
  readonly index: number;
  /** Its place among the rows that are sent along. */
  readonly place: number;
}

/** PostgreSQL writes such a record down from the very arrays that would have been stored. */
const keepDanglingStatement = perType((type) => {
  const { id, columns, types } = tableOf(type);
  const after = columns.length + 1;
  const members = columns.map((column) => `'${column.slice(1, -1)}', i.${column}`);
  return {
    name: `keep dangling ${type}`,
    text: `
      insert into rejections (organisation_id, rejection_id, type, request_id, index, record_id, record, fields, codes, messages)
      select i.organisation_id, r.rejection_id, $${after + 1}, $${after + 2}, r.index, i.${id},
        json_strip_nulls(json_build_object(${members.join(', ')}))::text, r.fields, r.codes, r.messages
      from ${sentRows(columns, types, ', generate_subscripts($2::uuid[], 1) as "#"')}
      join json_to_recordset($${after + 3}::json)
        as r(rejection_id uuid, index integer, place integer, ${reasonColumns}) on r.place = i."#" - 1`,
  };
});

/** Keeps records that refer to what does not exist. */
export async function keepDangling(
  client: Client,
  organisationId: string,
  type: ResourceType,
  requestId: string,
  { arrays }: EncodedRows,
  dangling: readonly DanglingRecord[],
): Promise<void> {
  await client.query({
    ...keepDanglingStatement(type),
    values: [organisationId, ...arrays, type, requestId, JSON.stringify(dangling)],
  });
}

/**
 * Says that there are rejections of the type. The row is shared with others who say the same, and cannot be removed
 * before we commit: see `closeIfNone`.
 */
export async function markOpen(client: Client, organisationId: string, type: ResourceType): Promise<void> {
  for (;;) {
    await client.query({
      name: 'mark rejections open',
      text: `insert into open_rejections (organisation_id, type, seen_at) values ($1, $2, $3)
             on conflict (organisation_id, type) do nothing`,
      values: [organisationId, type, new Date()],
    });
    const { rowCount } = await client.query({
      name: 'hold rejections open',
      text: 'select from open_rejections where organisation_id = $1 and type = $2 for share',
      values: [organisationId, type],
    });
    if (rowCount === 1) return;
  }
}

/** Removes the mark where no rejection is left. Whoever is about to add one is waited for, and then seen. */
export async function closeIfNone(pool: Pool, organisationId: string, type: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    const here = [organisationId, type];
    await client.query(
      'select from open_rejections where organisation_id = $1 and type = $2 for update',
      here,
    );
    await client.query(
      `delete from open_rejections where organisation_id = $1 and type = $2
         and not exists (select from rejections where organisation_id = $1 and type = $2)`,
      here,
    );
  });
}

/** Marks that have stood for a while, to be looked at by whoever keeps house. */
export async function openMarks(
  pool: Pool,
  seenBefore: Date,
  marksMax: number,
): Promise<{ organisation_id: string; type: string }[]> {
  const { rows } = await pool.query<{ organisation_id: string; type: string }>(
    'select organisation_id, type from open_rejections where seen_at < $1 order by random() limit $2',
    [seenBefore, marksMax],
  );
  return rows;
}

/**
 * Removes the rejections of records that have been stored since; returns how many there were. Whoever removes several
 * locks them in the order of their ids first, and after the records, so that no two wait for each other.
 */
export async function dropStored(
  client: Client,
  organisationId: string,
  type: ResourceType,
  ids: Buffer,
): Promise<number> {
  const { rowCount } = await client.query({
    name: 'drop rejections of stored records',
    text: `
      delete from rejections where organisation_id = $1 and rejection_id in (
        select rejection_id from rejections where organisation_id = $1 and type = $2 and record_id = any($3::uuid[])
        order by rejection_id for update)`,
    values: [organisationId, type, ids],
  });
  return rowCount ?? 0;
}

export interface RejectionFilter {
  readonly type?: string;
  readonly code?: string;
  readonly field?: string;
  readonly request_id?: string;
}

export interface StoredRejection extends Reasons {
  readonly rejection_id: string;
  readonly type: ResourceType;
  readonly request_id: string;
  readonly index: number;
  readonly record_id: string | null;
  readonly record: string | null;
}

/** The conditions of a filter, and their values; the organisation is the first. */
function conditionsOf(organisationId: string, { type, code, field, request_id }: RejectionFilter) {
  const values: unknown[] = [organisationId];
  const conditions = ['organisation_id = $1'];
  if (type !== undefined) conditions.push(`type = $${values.push(type)}`);
  if (request_id !== undefined) conditions.push(`request_id = $${values.push(request_id)}`);
  // Of one and the same bad field, where both are given.
  if (code !== undefined || field !== undefined) {
    const bad: string[] = [];
    if (code !== undefined) bad.push(`bad.code = $${values.push(code)}`);
    if (field !== undefined) bad.push(`bad.field = $${values.push(field)}`);
    conditions.push(
      `exists (select from unnest(codes, fields) as bad(code, field) where ${bad.join(' and ')})`,
    );
  }
  return { values, conditions };
}

const columns = 'rejection_id, type, request_id, index, record_id, record, fields, codes, messages';

/** Oldest first, from after an id on. */
export interface RejectionRange {
  readonly after: string | undefined;
  readonly limit: number;
}

/** Those whose records were kept, to be tried again. */
export async function listReplayable(
  client: Client,
  organisationId: string,
  filter: RejectionFilter,
  { after, limit }: RejectionRange,
): Promise<StoredRejection[]> {
  const { values, conditions } = conditionsOf(organisationId, filter);
  if (after !== undefined) conditions.push(`rejection_id > $${values.push(after)}`);
  values.push(limit);
  const { rows } = await client.query<StoredRejection>(
    `select ${columns} from rejections where ${conditions.join(' and ')} and record is not null
     order by rejection_id limit $${values.length}`,
    values,
  );
  return rows;
}

/** A page of them, ended early where their records come to more than so many bytes; and whether there are more. */
export async function pageOfRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
  { after, limit }: RejectionRange,
  bytesMax: number,
): Promise<{ readonly rejections: readonly StoredRejection[]; readonly more: boolean }> {
  const { values, conditions } = conditionsOf(organisationId, filter);
  if (after !== undefined) conditions.push(`rejection_id > $${values.push(after)}`);
  const [limitAt, bytesAt] = [values.push(limit + 1), values.push(bytesMax)];
  const { rows } = await pool.query<StoredRejection & { found: string }>(
    `select ${columns}, found from (
       select *, count(*) over () as found, sum(octet_length(record)) over (order by rejection_id) - octet_length(record) as before
       from (
         select * from rejections where ${conditions.join(' and ')} order by rejection_id limit $${limitAt}) as next) as page
     where before is null or before < $${bytesAt} order by rejection_id limit $${limitAt} - 1`,
    values,
  );
  return { rejections: rows, more: rows.length < Number(rows[0]?.found ?? 0) };
}

export async function countRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
): Promise<number> {
  const { values, conditions } = conditionsOf(organisationId, filter);
  const { rows } = await pool.query<{ count: string }>(
    `select count(*) from rejections where ${conditions.join(' and ')}`,
    values,
  );
  return Number(rows[0]?.count);
}

export interface RejectionSummary {
  readonly type: string;
  readonly code: string;
  readonly field: string;
  readonly count: string;
  readonly first: string;
  readonly last: string;
  readonly example: string;
}

/** Like rejections together. `first` and `last` are ids, which are times; the first is the example. */
export async function summariseRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
  groupsMax: number,
): Promise<RejectionSummary[]> {
  const { values, conditions } = conditionsOf(organisationId, filter);
  const bad = [];
  if (filter.code !== undefined) bad.push(`bad.code = $${values.push(filter.code)}`);
  if (filter.field !== undefined) bad.push(`bad.field = $${values.push(filter.field)}`);
  values.push(groupsMax);
  const { rows } = await pool.query<RejectionSummary>(
    `select type, bad.code, bad.field, count(*) as count, min(rejection_id::text) as first, max(rejection_id::text) as last
     from rejections cross join lateral unnest(codes, fields) as bad(code, field)
     where ${[...conditions, ...bad].join(' and ')}
     group by type, bad.code, bad.field order by count(*) desc, type, bad.code, bad.field limit $${values.length}`,
    values,
  );
  return rows;
}

export async function findRejections(
  pool: Pool,
  organisationId: string,
  ids: readonly string[],
): Promise<StoredRejection[]> {
  const { rows } = await pool.query<StoredRejection>(
    `select ${columns} from rejections where organisation_id = $1 and rejection_id = any($2::uuid[])`,
    [organisationId, ids],
  );
  return rows;
}

/** Another replay of the type excludes ours until it has committed; false where there is one. */
export async function tryToReplay(client: Client, organisationId: string, type: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as locked',
    [`replay ${organisationId} ${type}`],
  );
  return rows[0]?.locked ?? false;
}

export interface Settled {
  readonly rejection_id: string;
  /** Of a record that was stored: what was rejected of it before is settled too. */
  readonly record_id: string | null;
}

/** Removes what a replay has settled; returns the ids of what was there. */
export async function removeSettled(
  client: Client,
  organisationId: string,
  type: string,
  settled: readonly Settled[],
): Promise<Set<string>> {
  const { rows } = await client.query<{ rejection_id: string }>({
    name: 'remove settled rejections',
    text: `
      delete from rejections where organisation_id = $1 and rejection_id in (
        select rejection_id from rejections
        where organisation_id = $1 and (rejection_id = any($3::uuid[]) or (type = $2 and exists (
          select from unnest($3::uuid[], $4::uuid[]) as s(rejection_id, record_id)
          where s.record_id = rejections.record_id and rejections.rejection_id < s.rejection_id)
          and record_id = any($4::uuid[])))
        order by rejection_id for update)
      returning rejection_id`,
    values: [
      organisationId,
      type,
      settled.map(({ rejection_id }) => rejection_id),
      settled.map(({ record_id }) => record_id),
    ],
  });
  return new Set(rows.map(({ rejection_id }) => rejection_id));
}

/** Removes the next of those that match, after an id; returns how many, and the last of them. */
export async function discardSome(
  client: Client,
  organisationId: string,
  filter: RejectionFilter,
  { after, rowsMax }: { readonly after: string | undefined; readonly rowsMax: number },
): Promise<{ readonly gone: number; readonly last: string | undefined }> {
  const { values, conditions } = conditionsOf(organisationId, filter);
  // From there on, for what was removed a moment ago would have to be passed over again and again.
  if (after !== undefined) conditions.push(`rejection_id > $${values.push(after)}`);
  values.push(rowsMax);
  const { rows } = await client.query<{ rejection_id: string }>(
    `delete from rejections where organisation_id = $1 and rejection_id in (
       select rejection_id from rejections where ${conditions.join(' and ')} order by rejection_id limit $${values.length}
       for update)
     returning rejection_id`,
    values,
  );
  return {
    gone: rows.length,
    last: rows
      .map(({ rejection_id }) => rejection_id)
      .sort()
      .at(-1),
  };
}

/** Gives rejections that failed again their new reasons. */
export async function changeReasons(
  client: Client,
  organisationId: string,
  changed: readonly ({ readonly rejection_id: string } & Reasons)[],
): Promise<void> {
  await client.query({
    name: 'change reasons of rejections',
    text: `
      update rejections t set fields = r.fields, codes = r.codes, messages = r.messages
      from json_to_recordset($2::json) as r(rejection_id uuid, ${reasonColumns})
      where t.organisation_id = $1 and t.rejection_id = r.rejection_id`,
    values: [organisationId, JSON.stringify(changed)],
  });
}

/** Which types may have rejections: those that are marked. */
export async function typesRejected(pool: Pool, organisationId: string): Promise<string[]> {
  const { rows } = await pool.query<{ type: string }>(
    'select type from open_rejections where organisation_id = $1',
    [organisationId],
  );
  return rows.map(({ type }) => type);
}
