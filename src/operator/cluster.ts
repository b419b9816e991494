import { limits } from '../limits.ts';
import { ClusterRefused, type Coordinator, isDistributed, refuseOther } from './distribute.ts';

export async function refuseUndistributed(coordinator: Coordinator): Promise<void> {
  await refuseOther(coordinator);
  if (!(await isDistributed(coordinator)))
    throw new ClusterRefused('the tables are not distributed; run intake-server distribute first');
}

/** Colocated shards of other tables start at the same hash. */
const places = `
  select t.shardid as shard, t.shardminvalue, n.nodename || ':' || n.nodeport as node, n.nodename, n.nodeport
  from pg_dist_shard t join pg_dist_placement p using (shardid)
  join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
  where t.logicalrelid = 'tenants'::regclass`;

export async function readCluster(coordinator: Coordinator) {
  const { rows: nodes } = await coordinator.query<{
    node: string;
    is_coordinator: boolean;
    is_active: boolean;
  }>(
    `select nodename || ':' || nodeport as node, groupid = 0 as is_coordinator, isactive as is_active
     from pg_dist_node where noderole = 'primary' order by groupid`,
  );
  const { rows: shards } = await coordinator.query<{ shard: string; node: string; bytes: string }>(
    `select t.shard, t.node, coalesce(sum(z.size), 0)::bigint as bytes from (${places}) t
     join pg_dist_shard s on s.shardminvalue = t.shardminvalue
     left join citus_shard_sizes() z on z.shard_id = s.shardid
     group by t.shard, t.node`,
  );
  const of = (node: string) => shards.filter((shard) => shard.node === node);
  return {
    nodes: nodes.map((node) => ({
      ...node,
      shards: of(node.node).length,
      bytes: of(node.node).reduce((sum, { bytes }) => sum + Number(bytes), 0),
    })),
    largest: await largestOrganisations(coordinator, new Map(shards.map((one) => [String(one.shard), one]))),
  };
}

async function largestOrganisations(
  coordinator: Coordinator,
  shards: ReadonlyMap<string, { readonly node: string; readonly bytes: string }>,
) {
  const { rows: counted } = await coordinator.query<{ organisation_id: string; records: string }>(
    // The sum includes differences that maintenance has not rolled up yet.
    `select organisation_id, sum(records)::bigint as records
     from (select organisation_id, records from record_counts
           union all select organisation_id, records from record_count_changes) as counted
     group by organisation_id order by 2 desc, 1 limit ${limits.clusterOrganisationsShown}`,
  );
  // These are separate queries, because Citus does not join distributed and local tables here.
  const { rows: named } = await coordinator.query<{ organisation_id: string; slug: string; shard: string }>(
    `select organisation_id, slug, get_shard_id_for_distribution_column('tenants', organisation_id) as shard
     from organisations where organisation_id = any ($1)`,
    [counted.map(({ organisation_id }) => organisation_id)],
  );
  const { rows: shared } = await coordinator.query<{ shard: string; organisations: number }>(
    `select get_shard_id_for_distribution_column('tenants', organisation_id) as shard, count(*)::integer as organisations
     from organisations group by 1`,
  );
  return counted.flatMap(({ organisation_id, records }) => {
    const found = named.find((one) => one.organisation_id === organisation_id);
    const place = found && shards.get(String(found.shard));
    if (!found || !place) return [];
    return {
      organisation: found.slug,
      records: Number(records),
      shard: String(found.shard),
      node: place.node,
      // These two describe the whole shard, with all organisations that share it.
      bytes: Number(place.bytes),
      organisations: shared.find(({ shard }) => shard === found.shard)?.organisations ?? 1,
    };
  });
}

/** Returns undefined if the organisation is already on that node. */
export async function planMove(coordinator: Coordinator, slug: string, wanted: string) {
  const { rows: nodes } = await coordinator.query<{ node: string; may: boolean; call: string }>(
    `select nodename || ':' || nodeport as node, isactive and shouldhaveshards as may,
       format('%L, %s', nodename, nodeport) as call
     from pg_dist_node where noderole = 'primary' order by 1`,
  );
  const target = nodes.find(({ node }) => node === wanted);
  if (!target?.may)
    throw new ClusterRefused(
      `"${wanted}" is not a node that takes shards; these do: ${nodes.flatMap(({ node, may }) => (may ? node : [])).join(', ')}`,
    );
  const { rows } = await coordinator.query<{
    shard: string;
    node: string;
    call: string;
    organisations: number;
  }>(
    `select t.shard, t.node, format('%L, %s', t.nodename, t.nodeport) as call, (
       select count(*)::integer from organisations
       where get_shard_id_for_distribution_column('tenants', organisation_id) = t.shard) as organisations
     from (${places}) t where t.shard = (
       select get_shard_id_for_distribution_column('tenants', organisation_id) from organisations where slug = $1)`,
    [slug],
  );
  const [place] = rows;
  if (!place) throw new ClusterRefused(`there is no organisation "${slug}"; organisations list shows them`);
  if (place.node === wanted) return undefined;
  return {
    shard: String(place.shard),
    from: place.node,
    organisations: place.organisations,
    // This also moves all shards that are colocated with this one.
    statement: `select citus_move_shard_placement(${place.shard}, ${place.call}, ${target.call})`,
  };
}

/** In bytes. Undefined if no move is running. */
export async function moveProgress(coordinator: Coordinator) {
  const { rows } = await coordinator.query<{ arrived: string; bytes: string; status: string | null }>(
    `select coalesce(sum(target_shard_size), 0) as arrived, coalesce(sum(source_shard_size), 0) as bytes, max(status) as status
     from get_rebalance_progress()`,
  );
  const [row] = rows;
  if (!row?.status) return undefined;
  return { arrived: Number(row.arrived), bytes: Number(row.bytes), status: row.status };
}
