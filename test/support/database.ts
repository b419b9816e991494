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

/** A database of the caller's own that nobody has migrated. */
export async function createEmptyDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `empty_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create database ${name}`);
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

/** The same database by way of the pooler, where the tests run with one (TEST_POOLER=1). */
export function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const port = inject('poolerPort');
  if (port !== null && url.port === new URL(inject('postgresUrl')).port) url.port = String(port);
  return url.href;
}
