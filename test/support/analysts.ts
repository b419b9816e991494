import pg from 'pg';
import { queryDatabase } from './query-database.ts';

/** Creates a login for an analyst. Roles belong to the whole server, so the login's name includes the database's name. */
export async function createAnalyst(ownerUrl: string, name: string): Promise<pg.Client> {
  const url = new URL(ownerUrl);
  const login = `${name}_${url.pathname.slice(1)}`;
  await queryDatabase(
    ownerUrl,
    `create role ${login} login password '${url.password}' in role intake_read_all;
     alter role ${login} set search_path = analytics_all, public`,
  );
  url.username = login;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  return client;
}
