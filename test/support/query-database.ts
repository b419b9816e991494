import pg from 'pg';

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
 * another one, even if nothing in it changed. What maintenance writes is left out: it runs when it pleases.
 */
export async function everyRowOf(databaseUrl: string): Promise<Record<string, string[]>> {
  return withClient(databaseUrl, async (client) => {
    const tables = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c
       where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
         and c.relname not in ('record_counts', 'record_count_changes', 'rejection_kinds', 'rejection_count_changes',
                               'interaction_partitions', 'leases', 'api_keys')
       order by 1`,
    );
    const rows: Record<string, string[]> = {};
    for (const { name } of tables.rows) {
      const found = await client.query<{ row: string }>(
        `select concat_ws(' ', ctid, xmin, t::text) as row from only ${name} t order by ctid`,
      );
      rows[name] = found.rows.map(({ row }) => row);
    }
    return rows;
  });
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
