import { randomUUIDv7 } from 'node:crypto';
import type { OrganisationQuota, QuotaUsage } from '../admission/quota.ts';
import type { OrganisationLimits } from '../admission/request-limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { type KeptType, keptTypes } from '../retention/kept-days.ts';

export type Retention = { readonly [Type in KeptType as `${Type}_kept_days`]: number | null };

export interface Organisation extends OrganisationLimits, Retention, OrganisationQuota, QuotaUsage {
  readonly organisation_id: string;
  readonly slug: string;
  readonly name: string;
  readonly created_at: string;
  readonly suspended_at: string | null;
  readonly deleted_at: string | null;
  /** Null until the removal of a deleted organisation has started. */
  readonly removal: Removal | null;
  readonly recommendations_report: boolean;
  readonly lake: boolean;
}

interface Removal {
  readonly started_at: string;
  readonly table: string | null;
  /** Removed so far from all tables. */
  readonly rows: number;
}

type Stored = Omit<Organisation, 'removal'> & { readonly removal_started_at: string | null };

const columns = `organisation_id, slug, name, ${isoTime('created_at')} as created_at,
  ${isoTime('suspended_at')} as suspended_at, ${isoTime('deleted_at')} as deleted_at,
  ${isoTime('removal_started_at')} as removal_started_at, requests_per_second_max, interactions_per_second_max,
  records_per_second_max, bytes_in_flight_max, recommendations_report, lake,
  records_stored_max::float8 as records_stored_max, bytes_stored_max::float8 as bytes_stored_max,
  ${usage('records')}, ${usage('bytes')},
  ${keptTypes.map((type) => `${type}_kept_days`).join(', ')}`;

/** Null without a quota, because the leader deletes the measurements of organisations without one. */
function usage(what: 'records' | 'bytes'): string {
  return `(
    select u.${what}::float8 from quota_usage u
    where u.organisation_id = organisations.organisation_id and ${what}_stored_max is not null) as ${what}_stored`;
}

/** A separate statement, because in a cluster, `removals` and `organisations` are on different nodes. */
async function withRemovals(pool: Pool | Client, stored: readonly Stored[]): Promise<Organisation[]> {
  const removed = stored.filter(({ removal_started_at }) => removal_started_at !== null);
  const progress = new Map<string, Omit<Removal, 'started_at'>>();
  if (removed.length > 0) {
    const { rows } = await pool.query<{ organisation_id: string; table: string | null; rows: string }>(
      `select organisation_id, table_name as table,
         (select coalesce(sum(value::bigint), 0) from jsonb_each_text(rows))::text as rows
       from removals where organisation_id = any ($1::uuid[])`,
      [removed.map(({ organisation_id }) => organisation_id)],
    );
    for (const { organisation_id, table, rows: count } of rows)
      progress.set(organisation_id, { table, rows: Number(count) });
  }
  return stored.map(({ removal_started_at: started_at, ...organisation }) => ({
    ...organisation,
    removal:
      started_at === null
        ? null
        : { started_at, ...(progress.get(organisation.organisation_id) ?? { table: null, rows: 0 }) },
  }));
}

export async function insertOrganisation(
  client: Client,
  slug: string,
  name: string,
): Promise<Organisation | undefined> {
  const { rows } = await client.query<Stored>(
    `insert into organisations (organisation_id, slug, name) values ($1, $2, $3)
     on conflict (slug) do nothing returning ${columns}`,
    [randomUUIDv7(), slug, name],
  );
  return (await withRemovals(client, rows))[0];
}

export async function findOrganisation(
  pool: Pool | Client,
  slug: string,
  lock: '' | 'for update' = '',
): Promise<Organisation | undefined> {
  const { rows } = await pool.query<Stored>(`select ${columns} from organisations where slug = $1 ${lock}`, [
    slug,
  ]);
  return (await withRemovals(pool, rows))[0];
}

export async function listOrganisations(
  pool: Pool,
  after: string | null,
  count: number,
  search?: string,
): Promise<Organisation[]> {
  const found =
    search === undefined
      ? ''
      : 'and (position(lower($3) in slug) > 0 or position(lower($3) in lower(name)) > 0)';
  const { rows } = await pool.query<Stored>(
    `select ${columns} from organisations where ($1::text is null or slug > $1) ${found} order by slug limit $2`,
    search === undefined ? [after, count] : [after, count, search],
  );
  return withRemovals(pool, rows);
}

/** Counts are rolled up once a minute. In a cluster, they are not on the node of the `organisations` table. */
export async function withStored(
  pool: Pool,
  organisations: readonly Organisation[],
): Promise<(Organisation & { readonly records: number; readonly last_upload_at: string | null })[]> {
  if (organisations.length === 0) return [];
  const { rows } = await pool.query<{ organisation_id: string; records: number; last_upload_at: string }>(
    `select organisation_id, sum(records)::float8 as records, ${isoTime('max(last_upload)')} as last_upload_at
     from record_counts where organisation_id = any ($1::uuid[]) group by organisation_id`,
    [organisations.map(({ organisation_id }) => organisation_id)],
  );
  const stored = new Map(rows.map(({ organisation_id, ...rest }) => [organisation_id, rest]));
  const nothing = { records: 0, last_upload_at: null };
  return organisations.map((one) => ({ ...one, ...(stored.get(one.organisation_id) ?? nothing) }));
}

/** An organisation that is already deleted keeps its original deletion time. */
export async function markDeleted(
  client: Client,
  organisationId: string,
  isDeleted: boolean,
): Promise<Organisation> {
  const { rows } = await client.query<Stored>(
    `update organisations set deleted_at = case when $2 then coalesce(deleted_at, now()) end
     where organisation_id = $1 returning ${columns}`,
    [organisationId, isDeleted],
  );
  return (await withRemovals(client, rows))[0] as Organisation;
}

export type ChangedOrganisation = Omit<
  Organisation,
  'slug' | 'created_at' | 'suspended_at' | 'deleted_at' | 'removal' | keyof QuotaUsage
> & {
  readonly suspended: boolean;
};

/** An organisation that is already suspended keeps its original suspension time. */
export async function updateOrganisation(
  client: Client,
  organisation: ChangedOrganisation,
): Promise<Organisation> {
  const { rows } = await client.query<Stored>(
    `update organisations set name = $2, suspended_at = case when $3 then coalesce(suspended_at, now()) end,
       requests_per_second_max = $4, interactions_per_second_max = $5, records_per_second_max = $6,
       bytes_in_flight_max = $7, recommendations_report = $8,
       interactions_kept_days = $9, receipts_kept_days = $10, rejections_kept_days = $11,
       records_stored_max = $12, bytes_stored_max = $13, lake = $14
     where organisation_id = $1 returning ${columns}`,
    [
      organisation.organisation_id,
      organisation.name,
      organisation.suspended,
      organisation.requests_per_second_max,
      organisation.interactions_per_second_max,
      organisation.records_per_second_max,
      organisation.bytes_in_flight_max,
      organisation.recommendations_report,
      organisation.interactions_kept_days,
      organisation.receipts_kept_days,
      organisation.rejections_kept_days,
      organisation.records_stored_max,
      organisation.bytes_stored_max,
      organisation.lake,
    ],
  );
  return (await withRemovals(client, rows))[0] as Organisation;
}
