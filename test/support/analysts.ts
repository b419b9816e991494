import pg from 'pg';
import { inject } from 'vitest';
import { queryDatabase } from './query-database.ts';

/**
 * On Citus a login that is bound to one organisation is refused everything: the tables of a view are read there with the
 * rights of who asks. So what such a login sees cannot be tried.
 */
export const boundAreRefused = inject('citus') !== null;

/** A login for an analyst, made as docs/analytics.md says; roles are of the whole server, so its name has the database's. */
export async function createAnalyst(
  ownerUrl: string,
  name: string,
  role: 'intake_read' | 'intake_read_all',
  organisationId?: string,
): Promise<pg.Client> {
  const url = new URL(ownerUrl);
  const login = `${name}_${url.pathname.slice(1)}`;
  const schema = role === 'intake_read' ? 'analytics' : 'analytics_all';
  await queryDatabase(
    ownerUrl,
    `create role ${login} login password '${url.password}' in role ${role};
     alter role ${login} set search_path = ${schema}, public`,
  );
  if (organisationId !== undefined)
    await queryDatabase(ownerUrl, `insert into analysts (login, organisation_id) values ($1::regrole, $2)`, [
      login,
      organisationId,
    ]);
  url.username = login;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  return client;
}
