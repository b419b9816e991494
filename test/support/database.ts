import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A migrated, empty database of the caller's own. */
export async function createTestDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Two files that clone at the same moment would find the template in use.
  await client.query('select pg_advisory_lock(1)');
  await client.query(`create database ${name} template intake_template`);
  await client.end();
  return url.replace(/\/postgres$/, `/${name}`);
}

/** Whom the service logs in as: somebody who may do just what it does. The commands are the owner's. */
export const servingLogin = 'intake_test';

/** The same database, for the service. */
export function servingUrl(ownerUrl: string, login = servingLogin): string {
  const url = new URL(ownerUrl);
  if (url.username === 'postgres') url.username = login;
  return url.href;
}
