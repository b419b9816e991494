import { runLong } from '../../jobs/time-partitions.ts';
import { limits } from '../../limits.ts';
import { personalTables } from '../../people/personal-tables.ts';
import { selectCluster } from '../../postgres/cluster/extension.ts';
import type { Pool } from '../../postgres/pool.ts';

/** The statistics of these tables can contain people's ids and other values. */
const tables: readonly string[] = [
  ...personalTables.map(({ name }) => name),
  ...['rejections', 'unsettled_batches', 'receipts', 'receipt_batches', 'changes'],
  ...['upload_idempotency_keys', 'interaction_idempotency_keys'],
  ...['report_interactions', 'report_visits', 'report_transactions'],
  ...['access_request_ids', 'access_request_records', 'erasure_ids'],
];

/**
 * Before PostgreSQL 17, only the owner may analyse a table. Partitions are analysed one by one. A partitioned table itself has statistics
 * only if an operator analysed it. PostgreSQL before 18 can analyse it only together with all partitions, and keeps the
 * statistics of a table that has become empty until it has rows again.
 */
export const analyseFunction = `
  create or replace function analyse_erased(analysed text) returns void
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp set lock_timeout = '2s' as $$
  declare
    named regclass := to_regclass(format('public.%I', analysed));
    is_new constant boolean := current_setting('server_version_num')::integer >= 180000;
    is_partitioned boolean;
    is_empty boolean;
  begin
    select c.relkind = 'p' into is_partitioned from pg_class c left join pg_inherits i on i.inhrelid = c.oid
    where c.oid = named and coalesce(i.inhparent, c.oid)::regclass::text = any ('{${tables.join(',')}}');
    if not found then
      raise exception 'only tables that people are erased from may be analysed';
    end if;
    if not is_partitioned then
      execute format('analyze %s', named);
    elsif exists (select from pg_stats s where s.inherited and s.schemaname = 'public' and s.tablename = analysed) then
      execute format('analyze %s %s', case when is_new then 'only' end, named);
    end if;
    execute format('select not exists (select 1 from %s)', named) into is_empty;
    if is_new and is_empty then
      perform pg_clear_attribute_stats('public', analysed, s.attname, s.inherited)
      from pg_stats s where s.schemaname = 'public' and s.tablename = analysed;
    end if;
  end
  $$;
  revoke execute on function analyse_erased from public`;

/**
 * Replaces the statistics of the next table or partition, and returns its name, or null if none is left. Of
 * `interactions`, only partitions in the changed range are analysed. Those that were never analysed, such as coming
 * days, have no statistics, but on a cluster, the coordinator does not know which shards were.
 */
export async function analyseNext(
  pool: Pool,
  changed: readonly string[],
  interactions: { readonly first: string | null; readonly last: string | null },
  after: string | null,
  stopping?: AbortSignal,
): Promise<string | null> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from unnest($1::text[]) as wanted(name)
     join pg_class p on p.oid = to_regclass(wanted.name)
     left join pg_inherits i on i.inhparent = p.oid and p.relkind = 'p'
     join pg_class c on c.oid = p.oid or c.oid = i.inhrelid
     left join interaction_partitions d on d.name = c.relname
     where c.relname > $4 and (d.name is null or (d.first_id <= $3 and d.end_id > $2))
       and (c.reltuples >= 0 or exists (${selectCluster}))
     group by c.relname order by c.relname limit 1`,
    [changed, interactions.first, interactions.last, after ?? ''],
  );
  const [next] = rows;
  if (!next) return null;
  const statement = { text: 'select analyse_erased($1)', values: [next.name] };
  await runLong(pool, statement, limits.indexBuildMsMax, stopping);
  return next.name;
}
