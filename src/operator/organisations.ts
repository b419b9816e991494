import { randomUUIDv7 } from 'node:crypto';
import type { OrganisationLimits } from '../admission/request-limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';

export interface Organisation extends OrganisationLimits {
  readonly organisation_id: string;
  readonly slug: string;
  readonly name: string;
  readonly created_at: string;
  readonly suspended_at: string | null;
  /** Whether the report on recommendations is switched on. */
  readonly recommendations_report: boolean;
}

const columns = `organisation_id, slug, name, ${isoTime('created_at')} as created_at,
  ${isoTime('suspended_at')} as suspended_at, requests_per_second_max, interactions_per_second_max,
  records_per_second_max, bytes_in_flight_max, recommendations_report`;

/** Undefined if the slug is taken. */
export async function insertOrganisation(
  client: Client,
  slug: string,
  name: string,
): Promise<Organisation | undefined> {
  const { rows } = await client.query<Organisation>(
    `insert into organisations (organisation_id, slug, name) values ($1, $2, $3)
     on conflict (slug) do nothing returning ${columns}`,
    [randomUUIDv7(), slug, name],
  );
  return rows[0];
}

export async function findOrganisation(
  pool: Pool | Client,
  slug: string,
  lock: '' | 'for update' = '',
): Promise<Organisation | undefined> {
  const { rows } = await pool.query<Organisation>(
    `select ${columns} from organisations where slug = $1 ${lock}`,
    [slug],
  );
  return rows[0];
}

/** A page, ordered by slug; with `search` only those whose slug or name contains it. */
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
  const { rows } = await pool.query<Organisation>(
    `select ${columns} from organisations where ($1::text is null or slug > $1) ${found} order by slug limit $2`,
    search === undefined ? [after, count] : [after, count, search],
  );
  return rows;
}

export type ChangedOrganisation = Omit<Organisation, 'slug' | 'created_at' | 'suspended_at'> & {
  readonly suspended: boolean;
};

/** Stores all fields that may change. An organisation that is already suspended keeps its first time. */
export async function updateOrganisation(
  client: Client,
  organisation: ChangedOrganisation,
): Promise<Organisation> {
  const { rows } = await client.query<Organisation>(
    `update organisations set name = $2, suspended_at = case when $3 then coalesce(suspended_at, now()) end,
       requests_per_second_max = $4, interactions_per_second_max = $5, records_per_second_max = $6,
       bytes_in_flight_max = $7, recommendations_report = $8
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
    ],
  );
  return rows[0] as Organisation;
}
