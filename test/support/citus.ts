import pg from 'pg';

/** Manages databases on every node of a Citus cluster, as the superuser. CITUS_URL is the coordinator's URL. */

/** Returns the URL of the `postgres` database on every node, with the coordinator first. */
export async function citusNodes(coordinatorUrl: string): Promise<string[]> {
  const [version] = await ask<{ citus: string | null }>(
    coordinatorUrl,
    `select (select extversion from pg_extension where extname = 'citus') as citus`,
  );
  if (!version?.citus)
    throw new Error('the database of CITUS_URL has no Citus: create the extension and add the workers there');
  const workers = await ask<{ nodename: string; nodeport: number }>(
    coordinatorUrl,
    'select nodename, nodeport from pg_dist_node where groupid > 0 and isactive order by nodeid',
  );
  if (workers.length < 2)
    throw new Error('the tests need a Citus cluster with two workers; add them to CITUS_URL');
  return [
    on(coordinatorUrl, 'postgres'),
    ...workers.map(({ nodename, nodeport }) => {
      const url = new URL(coordinatorUrl);
      url.host = `${nodename}:${nodeport}`;
      return on(url.href, 'postgres');
    }),
  ];
}

/** Creates a template database on every node. `fill` creates its tables. */
export async function createCitusTemplate(
  nodes: readonly string[],
  name: string,
  fill: (coordinatorUrl: string) => Promise<void>,
): Promise<void> {
  await onEveryNode(nodes, 'postgres', `create database ${name}`);
  await onEveryNode(nodes, name, 'create extension citus');
  const [coordinator = '', ...workers] = nodes.map((node) => on(node, name));
  await ask(coordinator, 'select citus_set_coordinator_host($1, $2)', hostAndPort(coordinator));
  for (const worker of workers) await ask(coordinator, 'select citus_add_node($1, $2)', hostAndPort(worker));
  await fill(coordinator);
  // Citus keeps a connection to each database, but a database cannot be cloned while it is in use.
  await onEveryNode(nodes, 'postgres', `alter database ${name} allow_connections false`);
  await onEveryNode(
    nodes,
    'postgres',
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`,
  );
}

export async function cloneCitusDatabase(
  nodes: readonly string[],
  template: string,
  name: string,
): Promise<void> {
  await onEveryNode(nodes, 'postgres', `create database ${name} template ${template}`);
}

export async function dropCitusDatabase(nodes: readonly string[], name: string): Promise<void> {
  await onEveryNode(nodes, 'postgres', `drop database if exists ${name} with (force)`);
}

async function onEveryNode(nodes: readonly string[], database: string, statement: string): Promise<void> {
  await Promise.all(nodes.map((node) => ask(on(node, database), statement)));
}

/** Returns the URL of another database on the same server. */
function on(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}

function hostAndPort(url: string): [string, number] {
  const { hostname, port } = new URL(url);
  return [hostname, Number(port || 5432)];
}

async function ask<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
