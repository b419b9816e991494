import type { Client, Pool } from './pool.ts';

/** What a batch changed about how much an organisation has. */
export interface CountChange {
  readonly records: number;
  readonly rejections: number;
  /** The newest `updated` among the records that were stored. */
  readonly newestUpdated: string | null;
  readonly lastUpload: Date | null;
}

/** Notes a difference, in the transaction that made it. */
export async function addCountChange(
  client: Client,
  organisationId: string,
  type: string,
  { records, rejections, newestUpdated, lastUpload }: CountChange,
): Promise<void> {
  await client.query({
    name: 'add count change',
    text: `
      insert into record_count_changes (organisation_id, type, records, rejections, newest_updated, last_upload)
      values ($1, $2, $3, $4, $5, $6)`,
    values: [organisationId, type, records, rejections, newestUpdated, lastUpload],
  });
}

export interface TypeCount {
  readonly type: string;
  readonly records: string;
  readonly rejections: string;
  readonly newest_updated: string | null;
  readonly last_upload: string | null;
}

/** What was rolled up and the differences since, which are few. */
export async function countsOf(pool: Pool, organisationId: string): Promise<TypeCount[]> {
  const { rows } = await pool.query<TypeCount>({
    name: 'counts',
    text: `
      select type, sum(records)::bigint as records, sum(rejections)::bigint as rejections,
        max(newest_updated) as newest_updated, max(last_upload) as last_upload
      from (
        select * from record_counts where organisation_id = $1
        union all
        select * from record_count_changes where organisation_id = $1) as known
      group by type`,
    values: [organisationId],
  });
  return rows;
}

/** Organisations whose differences have not been rolled up yet. */
export async function organisationsWithChanges(pool: Pool, organisationsMax: number): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    'select distinct organisation_id from record_count_changes limit $1',
    [organisationsMax],
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/** Adds an organisation's differences to what was rolled up; two processes that do so at once share the work. */
export async function rollUpCounts(pool: Pool, organisationId: string): Promise<void> {
  await pool.query({
    name: 'roll up counts',
    text: `
      with gone as (
        delete from record_count_changes where organisation_id = $1
        returning type, records, rejections, newest_updated, last_upload)
      insert into record_counts as c (organisation_id, type, records, rejections, newest_updated, last_upload)
      select $1, type, sum(records), sum(rejections), max(newest_updated), max(last_upload)
      from gone group by type order by type
      on conflict (organisation_id, type) do update set
        records = c.records + excluded.records, rejections = c.rejections + excluded.rejections,
        newest_updated = greatest(c.newest_updated, excluded.newest_updated),
        last_upload = greatest(c.last_upload, excluded.last_upload)`,
    values: [organisationId],
  });
}
