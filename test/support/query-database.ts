import pg from 'pg';
import { inject } from 'vitest';

/** Queries the database directly on its own connection, bypassing the service. */
export async function queryDatabase<Row extends pg.QueryResultRow>(
  databaseUrl: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows);
}

/**
 * Returns every row of every table, each with its location and the transaction that wrote it, so that a rewritten row
 * differs even if its values are the same. Skips everything that maintenance writes, including change numbers, because
 * maintenance can run at any time. Also skips what each process reports once a minute: itself and its activity.
 */
export async function everyRowOf(databaseUrl: string): Promise<Record<string, string[]>> {
  const nodes = await Promise.all(onEveryNode(databaseUrl).map((url) => withClient(url, rowsOfNode)));
  return Object.assign({}, ...nodes);
}

async function rowsOfNode(client: pg.Client): Promise<Record<string, string[]>> {
  const isCitus = inject('citus') !== null;
  // By default, Citus hides the tables that contain the rows.
  if (isCitus) await client.query('set citus.override_table_visibility = off');
  const tables = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0
       and c.relname !~ '^(record_counts|record_count_changes|rejection_kinds|rejection_count_changes|unsettled_batches|jobs|interaction_partitions|leases|api_keys|change_counters|report_[a-z]+|processes|organisation_activity|chore_runs)(_[0-9]+)?$'
       ${isCitus ? 'and not exists (select from pg_dist_partition where logicalrelid = c.oid)' : ''}
     order by 1`,
  );
  // Hundreds of tables are empty partitions, which take no space. A single statement reads all other tables.
  const perTable = tables.rows.map(({ name }) => {
    const row = name.startsWith('changes_')
      ? "concat_ws(' ', change_id, organisation_id, type, ids)"
      : "concat_ws(' ', ctid, xmin, t::text)";
    const order = name.startsWith('changes_') ? row : 'ctid';
    return `select '${name}' as name, array(select ${row} from only ${name} t order by ${order}) as rows`;
  });
  const found = await client.query<{ name: string; rows: string[] }>(perTable.join(' union all '));
  const filled = found.rows.filter(({ rows }) => rows.length > 0);
  return Object.fromEntries(filled.map(({ name, rows }) => [name, rows]));
}

/** Returns the number of sessions that wait for a lock in the database, on all nodes. */
export async function countWaiting(databaseUrl: string): Promise<number> {
  const [row] = await queryDatabase<{ count: number }>(
    databaseUrl,
    `select count(*)::integer as count from ${inject('citus') ? 'citus_stat_activity' : 'pg_stat_activity'}
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return row?.count ?? 0;
}

/** Returns the number of deadlocks in the database, on all nodes. A connection reports its count when it is closed. */
export async function countDeadlocks(databaseUrl: string): Promise<number> {
  const nodes = await Promise.all(
    onEveryNode(databaseUrl).map((url) =>
      queryDatabase<{ count: number }>(
        url,
        `select pg_stat_get_db_deadlocks(oid)::integer as count from pg_database where datname = current_database()`,
      ),
    ),
  );
  return nodes.flat().reduce((sum, { count }) => sum + count, 0);
}

/** Returns the database's URL on each node of a Citus cluster. On a single PostgreSQL server, returns only `databaseUrl`. */
export function onEveryNode(databaseUrl: string): string[] {
  const { pathname } = new URL(databaseUrl);
  return inject('citus')?.nodes.map((node) => new URL(pathname, node).href) ?? [databaseUrl];
}

/**
 * Returns a URL that allows adding triggers to distributed tables, which Citus otherwise refuses. Without Citus,
 * PostgreSQL accepts the unknown setting.
 */
export function allowingTriggers(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set('options', '-c citus.enable_unsafe_triggers=on');
  return url.href;
}

/** Returns how many of these ids are stored in the table. */
export async function countStored(
  databaseUrl: string,
  table: string,
  idColumn: string,
  ids: readonly string[],
): Promise<number> {
  const [row] = await queryDatabase<{ count: number }>(
    databaseUrl,
    `select count(*)::integer as count from ${table} where ${idColumn} = any($1)`,
    [ids],
  );
  return row?.count ?? 0;
}

async function withClient<T>(databaseUrl: string, ask: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}
