import type { Statement } from '../postgres/one-exchange.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, retryConflicts } from '../postgres/transactions.ts';

/** What a batch changed about how much an organisation has. */
export interface CountChange {
  readonly records: number;
  /** The newest `updated` among the records that were stored. */
  readonly newestUpdated: string | null;
  readonly lastUpload: Date | null;
}

/** Notes a difference, in the transaction that made it. */
export async function addCountChange(
  client: Client,
  organisationId: string,
  type: string,
  change: CountChange,
): Promise<void> {
  await client.query(countChangeStatement(organisationId, type, change));
}

export function countChangeStatement(
  organisationId: string,
  type: string,
  { records, newestUpdated, lastUpload }: CountChange,
): Statement {
  return {
    name: 'add count change',
    text: `
      insert into record_count_changes (organisation_id, type, records, newest_updated, last_upload)
      values ($1, $2, $3, $4, $5)`,
    values: [organisationId, type, records, newestUpdated, lastUpload],
  };
}

export interface TypeCount {
  readonly type: string;
  readonly records: string;
  readonly newest_updated: string | null;
  readonly last_upload: string | null;
}

/** What was rolled up and the differences since, which are few. */
export async function countsOf(pool: Pool, organisationId: string): Promise<TypeCount[]> {
  const { rows } = await pool.query<TypeCount>({
    name: 'counts',
    text: `
      select type, sum(records)::bigint as records, max(newest_updated) as newest_updated, max(last_upload) as last_upload
      from (
        select * from record_counts where organisation_id = $1
        union all
        select * from record_count_changes where organisation_id = $1) as known
      group by type`,
    values: [organisationId],
  });
  return rows;
}

/**
 * Adds the differences of all organisations to what was rolled up. Both statements see the same snapshot, so that exactly
 * what was added is removed; no `with`, which Citus would gather on the coordinator.
 */
export async function rollUpCounts(pool: Pool): Promise<void> {
  const work = async (client: Client) => {
    await client.query(`
      insert into record_counts as c (organisation_id, type, records, newest_updated, last_upload)
      select organisation_id, type, sum(records), max(newest_updated), max(last_upload)
      from record_count_changes group by organisation_id, type
      on conflict (organisation_id, type) do update set records = c.records + excluded.records,
        newest_updated = greatest(c.newest_updated, excluded.newest_updated),
        last_upload = greatest(c.last_upload, excluded.last_upload)`);
    await client.query('delete from record_count_changes');
    await client.query(`
      update rejection_kinds k set rejections = k.rejections + c.rejections
      from (
        select organisation_id, kind_id, sum(rejections) as rejections from rejection_count_changes
        group by organisation_id, kind_id) c
      where c.organisation_id = k.organisation_id and c.kind_id = k.kind_id`);
    await client.query('delete from rejection_count_changes');
  };
  await retryConflicts(() => inTransaction(pool, work, 'begin isolation level repeatable read'));
}
