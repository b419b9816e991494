import pg from 'pg';
import { inject } from 'vitest';

/** Asks the database itself, past the service, on a connection of its own. */
export async function queryDatabase<Row extends pg.QueryResultRow>(
  databaseUrl: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows);
}

/**
 * Every row of every table, each with where it lies and which transaction wrote it: a row that was written anew is
 * another one, even if nothing in it changed. What maintenance writes is left out, and of changes that they are numbered:
 * it runs when it pleases.
 */
export async function everyRowOf(databaseUrl: string): Promise<Record<string, string[]>> {
  const nodes = await Promise.all(onEveryNode(databaseUrl).map((url) => withClient(url, rowsOfNode)));
  return Object.assign({}, ...nodes);
}

async function rowsOfNode(client: pg.Client): Promise<Record<string, string[]>> {
  const isCitus = inject('citus') !== null;
  // Citus hides the tables that hold the rows from whoever did not ask for them.
  if (isCitus) await client.query('set citus.override_table_visibility = off');
  const tables = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0
       and c.relname !~ '^(record_counts|record_count_changes|rejection_kinds|rejection_count_changes|unsettled_batches|interaction_partitions|leases|api_keys|change_counters|report_[a-z]+)(_[0-9]+)?$'
       ${isCitus ? 'and not exists (select from pg_dist_partition where logicalrelid = c.oid)' : ''}
     order by 1`,
  );
  // Hundreds of tables are empty partitions, which take up no space. One statement reads all others.
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

/** How many sessions wait for a lock in the database, on whichever node. */
export async function countWaiting(databaseUrl: string): Promise<number> {
  const [row] = await queryDatabase<{ count: number }>(
    databaseUrl,
    `select count(*)::integer as count from ${inject('citus') ? 'citus_stat_activity' : 'pg_stat_activity'}
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return row?.count ?? 0;
}

/** How many deadlocks there were in the database, on whichever node. A connection tells what it counted when it is closed. */
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

/** The database on each node of a Citus cluster; elsewhere there is one. */
export function onEveryNode(databaseUrl: string): string[] {
  const { pathname } = new URL(databaseUrl);
  return inject('citus')?.nodes.map((node) => new URL(pathname, node).href) ?? [databaseUrl];
}

/** For who adds a trigger: Citus would refuse one on a distributed table. PostgreSQL takes a setting that nobody knows. */
export function allowingTriggers(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set('options', '-c citus.enable_unsafe_triggers=on');
  return url.href;
}

/** How many of these ids are stored in the table. */
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
