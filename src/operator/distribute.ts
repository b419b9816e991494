import { erasureFunctions } from '../erasure/erasure-functions.ts';
import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import { schemaState } from '../postgres/schema/schema-state.ts';
import { expiryFunctions } from '../retention/expire-rows.ts';

/** All tables with an organisation's data are colocated with `tenants`, so all of its data is on one node. */

/** Thrown if nothing was distributed or moved. The message states why, and what the operator should do. */
export class ClusterRefused extends Error {}

export interface Coordinator {
  query<R extends object>(text: string, values?: unknown[]): Promise<{ rows: R[] }>;
}

/**
 * Tables with an organisation id that stay on the coordinator. Key lookups read them before the organisation is known, and
 * operators read `audit_log` across organisations.
 */
export const onCoordinator = ['organisations', 'api_keys', 'audit_log', 'quota_usage'];

/** Other runs wait until this run's session has ended, and then find that everything is done. */
export async function lockDistribution(coordinator: Coordinator): Promise<void> {
  await coordinator.query(`select pg_advisory_lock(hashtext('intake distribute'))`);
}

/** Each statement is its own transaction, so the next run continues where an interrupted run stopped. */
export async function distributionSteps(
  coordinator: Coordinator,
  shards: number = limits.clusterShards,
): Promise<string[]> {
  const { rows: tables } = await coordinator.query<{
    name: string;
    has_key: boolean;
    is_distributed: boolean;
  }>(
    `select c.relname as name, exists (select from pg_index where indrelid = c.oid and indisprimary) as has_key,
       exists (select from pg_dist_partition where logicalrelid = c.oid) as is_distributed
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id' and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> all ($1) and c.relname not like 'to\\_drop\\_%'
     order by c.relname <> 'tenants', c.relname`,
    [onCoordinator],
  );
  const steps: string[] = [];
  const remaining = tables.filter(({ is_distributed }) => !is_distributed);
  for (const { name, has_key } of remaining) {
    // Without a replica identity, a shard could not be moved while it is written to.
    if (!has_key) steps.push(`alter table ${name} replica identity full`);
    const where = name === 'tenants' ? `shard_count => ${shards}` : `colocate_with => 'tenants'`;
    steps.push(`select create_distributed_table('${name}', 'organisation_id', ${where})`);
  }
  // Distributing a table copies its rows. The original rows stay on the coordinator's disk until they are truncated.
  const left = await tablesWithLocalRows(
    coordinator,
    remaining.map(({ name }) => name),
  );
  return [
    ...steps,
    ...left.map((name) => `select truncate_local_data_after_distributing_table('${name}')`),
    ...(await functionSteps(coordinator)),
  ];
}

/**
 * These functions run on the node that stores the organisation's rows, so that writes by the owner and by the service
 * are in one transaction. On the coordinator, each role would write over its own connection, which Citus refuses.
 */
async function functionSteps(coordinator: Coordinator): Promise<string[]> {
  const { rows } = await coordinator.query<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace = 'public'::regnamespace and p.proname = any ($1) and not exists (
       select from pg_dist_object o where o.classid = 'pg_proc'::regclass and o.objid = p.oid and o.force_delegation)
     order by p.proname`,
    [[...erasureFunctions, ...expiryFunctions, 'remove_rows']],
  );
  return rows.map(
    ({ name }) =>
      `select create_distributed_function('${name}', 'organisation', colocate_with => 'tenants', force_delegation => true)`,
  );
}

async function tablesWithLocalRows(
  coordinator: Coordinator,
  remaining: readonly string[],
): Promise<string[]> {
  const { rows } = await coordinator.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and (c.oid in (select logicalrelid from pg_dist_partition) or c.relname = any ($1)) and not c.relispartition
       and (select sum(pg_relation_size(t.relid)) from (
         select c.oid as relid union select relid from pg_partition_tree(c.oid)) t) > 0
     order by c.relname`,
    [remaining],
  );
  return rows.map(({ name }) => name);
}

export async function refuseDistribution(coordinator: Coordinator, shards?: number): Promise<void> {
  await refuseOther(coordinator);
  const state = await schemaState(coordinator);
  if (state !== 'current')
    throw new ClusterRefused(
      `the schema of the database is ${state} of this version; run intake-server migrate first`,
    );
  await refuseLogin(coordinator);
  await refuseNodes(coordinator);
  const { rows } = await coordinator.query<{ shards: number }>(
    `select count(*)::integer as shards from pg_dist_shard where logicalrelid = 'tenants'::regclass`,
  );
  const before = rows[0]?.shards ?? 0;
  if (before > 0 && shards !== undefined && before !== shards)
    throw new ClusterRefused(
      `the tables are already distributed over ${before} shards, which --shards does not change; leave it out, or give ${before}`,
    );
  if (before === 0) await refuseServing(coordinator);
}

/** Throws unless this is the coordinator of a cluster with workers. */
export async function refuseOther(coordinator: Coordinator): Promise<void> {
  const { rows: extensions } = await coordinator.query(selectCluster);
  if (extensions.length === 0)
    throw new ClusterRefused(
      'the database has no Citus; let a superuser run create extension citus in it, on the coordinator and on every worker, ' +
        'and then citus_set_coordinator_host and citus_add_node on the coordinator',
    );
  const { rows } = await coordinator.query<{ is_coordinator: boolean; workers: number }>(
    `select (select groupid = 0 from pg_dist_local_group) as is_coordinator,
       (select count(*)::integer from pg_dist_node where groupid <> 0 and noderole = 'primary' and isactive) as workers`,
  );
  if (!rows[0]?.is_coordinator)
    throw new ClusterRefused('DATABASE_URL points at a worker; set it to the coordinator');
  if (rows[0].workers === 0)
    throw new ClusterRefused(
      "the cluster has no workers; add each on the coordinator: select citus_add_node('<host>', <port>)",
    );
}

async function refuseLogin(coordinator: Coordinator): Promise<void> {
  const { rows } = await coordinator.query<{ login: string; owner: string }>(
    `select quote_ident(current_user) as login, quote_ident(pg_get_userbyid(relowner)) as owner
     from pg_class where oid = 'tenants'::regclass and not pg_has_role(relowner, 'usage')`,
  );
  const [other] = rows;
  if (other)
    throw new ClusterRefused(
      `the login ${other.login} does not own the tables; run it as their owner, ${other.owner}`,
    );
}

/** Checks that this login can connect to every worker, and that every node supports moving shards. */
async function refuseNodes(coordinator: Coordinator): Promise<void> {
  const asked = `current_setting('wal_level') || ' ' || (current_setting('extra_float_digits')::integer > 0)`;
  const { rows } = await coordinator.query<{ node: string; is_reached: boolean; answer: string }>(
    `select 'the coordinator' as node, true as is_reached, ${asked} as answer
     union all
     select nodename || ':' || nodeport, success, result from run_command_on_workers($$ select ${asked} $$)`,
  );
  for (const { node, is_reached, answer } of rows) {
    if (!is_reached)
      throw new ClusterRefused(
        `the coordinator cannot run statements on ${node}: ${answer}; check that the node is up and lets this login in ` +
          '(pg_hba.conf, .pgpass or pg_dist_authinfo)',
      );
    const [walLevel, isExact] = answer.split(' ');
    if (walLevel !== 'logical')
      throw new ClusterRefused(
        `${node} has wal_level ${walLevel}, so no shard could be moved; set it to logical on every node and restart them`,
      );
    if (isExact !== 'true')
      throw new ClusterRefused(
        `${node} has extra_float_digits below 1, so numbers would be read rounded; set it to 1 on every node`,
      );
  }
}

/** A process with statements that were prepared for plain PostgreSQL would fail on Citus until it is restarted. */
async function refuseServing(coordinator: Coordinator): Promise<void> {
  const { rows } = await coordinator.query<{ sessions: number }>(
    `select count(*)::integer as sessions from pg_stat_activity
     where datname = current_database() and application_name = 'intake-server' and pid <> pg_backend_pid()`,
  );
  const sessions = rows[0]?.sessions ?? 0;
  if (sessions > 0)
    throw new ClusterRefused(
      `processes of Intake are connected (${sessions} connections); stop them, and start them again when the tables are distributed`,
    );
}

export async function isDistributed(coordinator: Coordinator): Promise<boolean> {
  const { rows: extensions } = await coordinator.query(selectCluster);
  if (extensions.length === 0) return false;
  const { rows } = await coordinator.query(
    `select from pg_dist_partition where logicalrelid = to_regclass('public.tenants')`,
  );
  return rows.length > 0;
}
