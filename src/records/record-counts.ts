import { exactTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, queryRows, retryConflicts } from '../postgres/transactions.ts';

interface TypeCount {
  readonly type: string;
  readonly records: string;
  readonly newest_updated: string | null;
  readonly last_upload: string | null;
}

/** The rolled-up counts plus the few differences since the last roll-up. */
export async function countsOf(pool: Pool, organisationId: string): Promise<TypeCount[]> {
  const { rows } = await pool.query<TypeCount>({
    name: 'counts',
    text: `
      select type, sum(records)::bigint as records, ${exactTime('max(newest_updated)')} as newest_updated,
        ${exactTime('max(last_upload)')} as last_upload
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
 * The statements see one snapshot, so they delete exactly the differences that they have added. A single statement
 * using `with` would be gathered on one node of a cluster. The rows are counted first, because a difference that is
 * deleted without being added would be lost permanently.
 */
export async function rollUpCounts(pool: Pool): Promise<void> {
  const work = async (client: Client) => {
    await rollUp(
      client,
      'record_count_changes',
      'select count(*) as changes, true as is_counted from record_count_changes group by organisation_id, type',
      `insert into record_counts as c (organisation_id, type, records, newest_updated, last_upload)
       select organisation_id, type, sum(records), max(newest_updated), max(last_upload)
       from record_count_changes group by organisation_id, type
       on conflict (organisation_id, type) do update set records = c.records + excluded.records,
         newest_updated = greatest(c.newest_updated, excluded.newest_updated),
         last_upload = greatest(c.last_upload, excluded.last_upload)`,
    );
    await rollUp(
      client,
      'rejection_count_changes',
      `select count(*) as changes, count(k.kind_id) > 0 as is_counted
       from rejection_count_changes c left join rejection_kinds k using (organisation_id, kind_id)
       group by organisation_id, kind_id`,
      `update rejection_kinds k set rejections = k.rejections + c.rejections
       from (
         select organisation_id, kind_id, sum(rejections) as rejections from rejection_count_changes
         group by organisation_id, kind_id) c
       where c.organisation_id = k.organisation_id and c.kind_id = k.kind_id`,
    );
  };
  await retryConflicts(() => inTransaction(pool, work, 'begin isolation level repeatable read'));
}

/** `grouped` returns a row for each count, with the number of its differences and whether the count exists. */
async function rollUp(client: Client, differences: string, grouped: string, add: string): Promise<void> {
  const { rows } = await client.query<{ changes: number; counts: number }>(`
    select coalesce(sum(changes), 0)::integer as changes, count(*) filter (where is_counted)::integer as counts
    from (${grouped}) as grouped`);
  const { changes, counts } = rows[0] ?? { changes: 0, counts: 0 };
  if (changes === 0) return;
  await queryRows(client, { text: add }, counts);
  await queryRows(client, { text: `delete from ${differences}` }, changes);
}
