import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Pool } from '../postgres/pool.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { type Activity, type Measure, measures } from './activity-counts.ts';

interface BusyOrganisation extends Activity {
  readonly organisation_id: string;
  readonly slug: string | null;
  readonly name: string | null;
}

export async function busiestOrganisations(
  pool: Pool,
  { by, minutes, count }: { by: Measure; minutes: number; count: number },
): Promise<{ from: string; to: string; organisations: BusyOrganisation[] }> {
  const to = Date.now();
  const sums = measures.map((measure) => `sum(${measure})::double precision as ${measure}`);
  const { rows } = await pool.query<BusyOrganisation>(
    `select a.organisation_id, o.slug, o.name, ${measures.map((measure) => `a.${measure}`).join(', ')}
     from (
       select organisation_id, ${sums.join(', ')} from organisation_activity
       where ended_at > now() - make_interval(mins => $1)
       group by organisation_id order by ${by} desc, organisation_id limit $2) as a
     left join organisations o on o.organisation_id = a.organisation_id
     order by a.${by} desc, a.organisation_id`,
    [minutes, count],
  );
  const organisations = rows.filter((row) => row[by] > 0);
  return { from: iso(to - minutes * 60_000), to: iso(to), organisations };
}

const iso = (ms: number) => new Date(ms).toISOString();

export async function serviceState(pool: Pool) {
  const { rows: processes } = await pool.query(
    `select process_id, host, version, ${isoTime('started_at')} as started_at, ${isoTime('seen_at')} as seen_at, is_leader
     from processes order by host, started_at, process_id limit ${limits.processesListedMax}`,
  );
  const { rows: maintenance } = await pool.query(
    `select chore, ${isoTime('ran_at')} as ran_at, ${isoTime('failed_at')} as failed_at from chore_runs order by chore`,
  );
  return { processes, maintenance, partitions: await partitions(pool), nodes: await nodes(pool) };
}

/** A partition covers a range of ids, which start with their creation time, so the end of the last range is a time. */
async function partitions(pool: Pool) {
  const { rows } = await pool.query<{ table: string; count: number; last: string }>(
    `select p.relname as table, count(*)::integer as count,
       max(substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''')) as last
     from pg_class p join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
     where p.relnamespace = 'public'::regnamespace and p.relkind = 'p' group by p.relname order by p.relname`,
  );
  return rows.map(({ table, count, last }) => ({ table, count, ends_at: timeOfUuidV7(last) }));
}

/** Null if the database is not a cluster. */
async function nodes(pool: Pool) {
  const { rows: clusters } = await pool.query(selectCluster);
  if (clusters.length === 0) return null;
  const { rows } = await pool.query<{ name: string; port: number; is_active: boolean }>(
    'select nodename as name, nodeport as port, isactive as is_active from pg_dist_node order by groupid, nodename',
  );
  return rows;
}
